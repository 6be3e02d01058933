/** Fields of the form for tasks. */

export interface Field {
  key: string;
  label: string;
  hint: string;
  needed?: boolean;
  /** Suggestions: points or probes. */
  list?: 'points' | 'probe-names';
  choices?: string[];
  isNumber?: boolean;
  /** It is `yes` or `no`. */
  isTruth?: boolean;
}

export type Values = Record<string, string>;

export const MEASURES = [
  { name: 'passive-delay', means: 'delay and loss of the packets that pass two points' },
  { name: 'active-delay', means: 'delay and loss of test packets' },
  { name: 'volume', means: 'packets and bytes at a point' },
  { name: 'traffic', means: 'bandwidth over time at a point' },
  { name: 'flows', means: 'the quality of each flow at a point' },
];

const FILTER: Field = {
  key: 'filter',
  label: 'Filter',
  hint: 'tcpdump syntax: udp portrange 5004-5099',
};

const at: Field = {
  key: 'at',
  label: 'At',
  hint: 'PROBE/INTERFACE',
  needed: true,
  list: 'points',
};

/** As `wirestamp delay --codec` has them. */
const CODECS = [
  'g711',
  'g711-plc',
  'g723.1-5.3',
  'g723.1-6.3',
  'g729',
  'g729a',
  'gsm-fr',
  'gsm-efr',
  'amr-wb-6.6',
  'amr-wb-8.85',
  'amr-wb-12.65',
  'amr-wb-14.25',
  'amr-wb-15.85',
  'amr-wb-18.25',
  'amr-wb-19.85',
  'amr-wb-23.05',
  'amr-wb-23.85',
  'evs-swb-9.6',
  'evs-swb-13.2',
  'evs-swb-16.4',
  'evs-swb-24.4',
  'evs-swb-32',
  'evs-swb-48',
];

const CODEC: Field = {
  key: 'codec',
  label: 'Codec',
  hint: 'estimates the call quality (MOS)',
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
      hint: 'sampled share of packets: 0.1 for a tenth',
      isNumber: true,
    },
    CODEC,
  ],
  'active-delay': [
    { key: 'from', label: 'From', hint: 'the probe that sends', needed: true, list: 'probe-names' },
    { key: 'to', label: 'To', hint: 'the probe that reflects', needed: true, list: 'probe-names' },
    { key: 'address', label: 'Address', hint: 'of the reflector, if it differs from the probe\u2019s address' },
    { key: 'port', label: 'Port', hint: 'UDP port of the reflector; default: one per task', isNumber: true },
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

/** Fields of the schedule, a table inside the task. */
export const SCHEDULE: Field[] = [
  { key: 'start', label: 'Start', hint: '2027-01-01T00:00:00Z' },
  { key: 'for', label: 'For', hint: '10m' },
  { key: 'every', label: 'Every', hint: '1h' },
  { key: 'until', label: 'Until', hint: '2027-12-31T00:00:00Z' },
];

/** The task spec for the controller. Invalid numbers are sent as text; the controller reports them. */
export function taskSpec(measure: string, values: Values): Record<string, unknown> {
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
