/** The keys of tasks, as a form has them. */

export interface Field {
  key: string;
  label: string;
  hint: string;
  needed?: boolean;
  /** What is offered: points or probes. */
  list?: 'points' | 'probe-names';
  choices?: string[];
  isNumber?: boolean;
  /** It is `yes` or `no`. */
  isTruth?: boolean;
}

export type Values = Record<string, string>;

export const MEASURES = [
  { name: 'passive-delay', means: 'delay and loss of the packets that pass two points' },
  { name: 'active-delay', means: 'the same of test packets' },
  { name: 'volume', means: 'packets and bytes at a point' },
  { name: 'traffic', means: 'bandwidth over time at a point' },
  { name: 'flows', means: 'the quality of each flow at a point' },
];

const FILTER: Field = {
  key: 'filter',
  label: 'Filter',
  hint: 'which packets, as tcpdump has it: udp portrange 5004-5099',
};

const at: Field = {
  key: 'at',
  label: 'At',
  hint: 'PROBE/INTERFACE',
  needed: true,
  list: 'points',
};

/** As `wirestamp delay --codec` has them. */
const CODECS = ['g711', 'g711-plc', 'g723.1-5.3', 'g723.1-6.3', 'g729', 'g729a', 'gsm-fr', 'gsm-efr'];

const CODEC: Field = {
  key: 'codec',
  label: 'Codec',
  hint: 'says what calls with it would sound like (MOS)',
  choices: ['', ...CODECS],
};

export const FIELDS: Record<string, Field[]> = {
  'passive-delay': [
    { ...at, key: 'from', label: 'From' },
    { ...at, key: 'to', label: 'To' },
    FILTER,
    {
      key: 'share',
      label: 'Share',
      hint: 'of the packets, the same at both points: 0.1 for a tenth',
      isNumber: true,
    },
    CODEC,
  ],
  'active-delay': [
    { key: 'from', label: 'From', hint: 'the probe that sends', needed: true, list: 'probe-names' },
    { key: 'to', label: 'To', hint: 'the probe that reflects', needed: true, list: 'probe-names' },
    { key: 'address', label: 'Address', hint: 'where that is reached, if not as the controller does' },
    { key: 'port', label: 'Port', hint: 'where it listens, if not at one of its own for each task', isNumber: true },
    { key: 'rate', label: 'Rate', hint: 'packets a second: 10', isNumber: true },
    { key: 'bytes', label: 'Size', hint: 'bytes above IP: 52, or 120 if authenticated', isNumber: true },
    { key: 'distribution', label: 'Distribution', hint: '', choices: ['', 'periodic', 'poisson'] },
    { key: 'dscp', label: 'DSCP', hint: 'class of service, 0 to 63', isNumber: true },
    { key: 'authenticated', label: 'Authenticated', hint: '', choices: ['', 'yes', 'no'], isTruth: true },
    CODEC,
  ],
  volume: [at, FILTER],
  traffic: [at, FILTER, { key: 'interval', label: 'Interval', hint: '1s' }],
  flows: [at, FILTER],
};

/** The keys of a schedule, which is a table of its own. */
export const SCHEDULE: Field[] = [
  { key: 'start', label: 'Start', hint: '2027-01-01T00:00:00Z' },
  { key: 'for', label: 'For', hint: '10m' },
  { key: 'every', label: 'Every', hint: '1h' },
  { key: 'until', label: 'Until', hint: '2027-12-31T00:00:00Z' },
];

/** What was filled in, as the controller takes it. Numbers that are none go as they are: it says why not. */
export function written(measure: string, values: Values): Record<string, unknown> {
  const of = (fields: Field[]): Record<string, unknown> => {
    const filled = fields.filter((it) => (values[it.key] ?? '').trim() !== '');
    return Object.fromEntries(filled.map((it) => [it.key, value(it, values[it.key] ?? '')]));
  };
  const schedule = of(SCHEDULE);
  const hasSchedule = Object.keys(schedule).length > 0;
  return { measure, ...of(FIELDS[measure] ?? []), ...(hasSchedule ? { schedule } : {}) };
}

function value(field: Field, text: string): string | number | boolean {
  if (field.isTruth) {
    return text === 'yes';
  }
  const number = Number(text.trim());
  return field.isNumber && !Number.isNaN(number) ? number : text.trim();
}
