/** Tests without a browser: formatted numbers, and columns of charts. */

import { expect, test } from '@playwright/test';
import { csv } from '../src/export';
import { columns } from '../src/series';
import { axis, bitRate, clock, lasting, packetRate, share, time } from '../src/units';

const plain = (text: string): string => text.replaceAll('\u202f', ' ').replaceAll('\u2212', '-');

test('times have a suitable unit and a sign', () => {
  const times = [0, 7, 999, 1234, -5000, 70_200, 1e6, 12_345_678, 2.5e9];
  const expected = ['0 ns', '7 ns', '999 ns', '1.23 us', '-5 us', '70.2 us', '1 ms', '12.3 ms', '2.50 s'];
  expect(times.map((it) => plain(time(it)))).toEqual(expected);
  expect(plain(time(-0.001))).toBe('0.00 ns');
});

test('small shares are not 0 % and large ones not 100 %', () => {
  const shares = [0, 1e-7, 0.0001, 0.01, 0.5, 0.9996, 0.99999, 1].map((it) => plain(share(it)));
  expect(shares).toEqual(['0 %', '< 0.001 %', '0.010 %', '1 %', '50 %', '99.960 %', '99.999 %', '100 %']);
});

test('an axis has one unit and enough digits', () => {
  expect(axis(time)([0, 2.5e6, 5e6]).map(plain)).toEqual(['0.0 ms', '2.5 ms', '5.0 ms']);
  expect(axis(share)([0, 0.25, 0.5]).map(plain)).toEqual(['0 %', '25 %', '50 %']);
  expect(axis(bitRate)([0, 5e8, 1e9]).map(plain)).toEqual(['0.0 Gbit/s', '0.5 Gbit/s', '1.0 Gbit/s']);
  expect(axis(packetRate)([0, 2]).map(plain)).toEqual(['0 /s', '2 /s']);
  expect(axis((it) => String(it))([4, 4.05])).toEqual(['4.00', '4.05']);
});

test('durations have two units, other days a date', () => {
  expect([0, 59, 60, 3661, 90_000].map((it) => plain(lasting(it)))).toEqual([
    '0 s',
    '59 s',
    '1 min',
    '1 h 1 min',
    '1 d 1 h',
  ]);
  const noon = new Date(2026, 0, 31, 12, 5, 9).getTime();
  expect(clock(noon, true, noon)).toBe('12:05:09');
  expect(clock(noon, false, noon + 86_400_000)).toBe('2026-01-31 12:05');
});

const at = (second: number, packets: number) => ({ begin_ns: second * 1e9, packets, bytes: 0 });

test('a gap without results is drawn', () => {
  const found = columns([at(1, 5), at(2, 6), at(60, 7)], 1, [(it) => it.packets]);
  expect(found).toEqual([
    [1, 2, 3, 60],
    [5, 6, null, 7],
  ]);
  expect(columns([], 1, [() => 0])).toEqual([[], []]);
});

test('the CSV has one column per number, quoted', () => {
  const results = [at(1, 5), { ...at(2, 6), delay_ns: { mean: 1.5 }, why: 'a "b", c' }];
  expect(csv(results)).toBe(
    'begin_ns,packets,bytes,delay_ns.mean,why\r\n1000000000,5,0,,\r\n2000000000,6,0,1.5,"a ""b"", c"\r\n',
  );
});
