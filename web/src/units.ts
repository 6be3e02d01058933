/** Formats numbers with units. */

/** A narrow no-break space. */
const SPACE = '\u202f';
const MINUS = '\u2212';

interface Unit {
  of: number;
  name: string;
}

const TIMES: Unit[] = [
  { of: 1e9, name: 's' },
  { of: 1e6, name: 'ms' },
  { of: 1e3, name: 'us' },
  { of: 1, name: 'ns' },
];

const scaled = (name: string): Unit[] => [
  { of: 1e12, name: `T${name}` },
  { of: 1e9, name: `G${name}` },
  { of: 1e6, name: `M${name}` },
  { of: 1e3, name: `k${name}` },
  { of: 1, name },
];
const BYTES = scaled('B');
const BITS = scaled('bit/s');
const PACKETS = scaled('/s');

function unitOf(value: number, units: Unit[]): Unit {
  const found = units.find((unit) => Math.abs(value) >= unit.of);
  return found ?? units[units.length - 1] ?? { of: 1, name: '' };
}

/** Three significant digits, or all digits before the decimal point. */
function digits(value: number): string {
  const size = Math.abs(value);
  const behind = size >= 100 || value === 0 ? 0 : size >= 10 ? 1 : 2;
  const text = size.toFixed(Number.isInteger(value) ? 0 : behind);
  return value < 0 && Number(text) !== 0 ? MINUS + text : text;
}

function withUnit(value: number, units: Unit[]): string {
  const unit = unitOf(value, units);
  return `${digits(value / unit.of)}${SPACE}${unit.name}`;
}

export const time = (ns: number): string => withUnit(ns, TIMES);
export const bytes = (value: number): string => withUnit(value, BYTES);
export const bitRate = (value: number): string => withUnit(value, BITS);
export const packetRate = (value: number): string => withUnit(value, PACKETS);
export const count = (value: number): string => value.toLocaleString('en-GB');
export const score = (value: number): string => value.toFixed(2);

/** What is little is not shown as nothing, and not quite all not as all. */
export function share(value: number): string {
  const percent = value * 100;
  if (percent > 0 && percent < 0.001) return `<${SPACE}0.001${SPACE}%`;
  if (percent > 99.9 && percent < 100) return `${(Math.floor(percent * 1000) / 1000).toFixed(3)}${SPACE}%`;
  const text = percent < 0.1 && percent > 0 ? percent.toFixed(3) : digits(percent);
  return `${text}${SPACE}%`;
}

const isWhole = (value: number): boolean => Math.abs(value - Math.round(value)) < 1e-6;

export type Format = (value: number) => string;

/** Writes the numbers beside an axis in one unit, with as many digits as tell them apart. */
export function axis(format: Format): (values: number[]) => string[] {
  const table = TABLES.get(format) ?? [];
  return (values) => {
    const unit = unitOf(Math.max(...values.map(Math.abs), 0), table);
    const step = Math.abs((values[1] ?? 0) - (values[0] ?? 0)) / unit.of;
    const behind = [0, 1, 2, 3, 4, 5].find((it) => isWhole(step * 10 ** it)) ?? 6;
    return values.map((value) => {
      const text = Math.abs(value / unit.of).toFixed(behind);
      return `${value < 0 ? MINUS : ''}${text}${unit.name && SPACE + unit.name}`;
    });
  };
}

const TABLES = new Map<Format, Unit[]>([
  [time, TIMES],
  [bitRate, BITS],
  [packetRate, PACKETS],
  [share, [{ of: 0.01, name: '%' }]],
]);

/** A while, in seconds, in its two greatest units. */
export function lasting(seconds: number): string {
  const units: [number, string][] = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  let rest = Math.max(0, Math.round(seconds));
  const parts: string[] = [];
  for (const [of, name] of units) {
    const many = Math.floor(rest / of);
    rest -= many * of;
    if (many > 0) parts.push(`${many}${SPACE}${name}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(' ') || `0${SPACE}s`;
}

const two = (value: number): string => String(value).padStart(2, '0');

/** The day of a year here. */
export const day = (at: Date): string => `${two(at.getMonth() + 1)}-${two(at.getDate())}`;

/** The time of day here, and the day if it is another than that of `beside`. */
export function clock(ms: number, withSeconds = true, beside = Date.now()): string {
  const at = new Date(ms);
  const date = `${at.getFullYear()}-${day(at)} `;
  const seconds = withSeconds ? `:${two(at.getSeconds())}` : '';
  const isOther = new Date(beside).toDateString() !== at.toDateString();
  return `${isOther ? date : ''}${two(at.getHours())}:${two(at.getMinutes())}${seconds}`;
}
