// libwirestamp_clock: a clock that stamps events.
//
// An event is stamped with the raw value of the cheapest trusted counter. The value is converted
// later into the time of day with an error bound: by the data with which the kernel converts the
// counter, if it publishes them, otherwise by samples. A thread of the library compares the counter
// with the system's clocks four times a second. Features of the Rust library that C does not have yet:
// the survey of the counters, anchor files, sleeping until a tick, and VMClock.
//
//     struct wirestamp_clock *clock;
//     if (wirestamp_clock_open(NULL, &clock) != WIRESTAMP_CLOCK_ERROR_NONE)
//         errx(1, "%s", wirestamp_clock_last_error());
//     uint64_t sent = wirestamp_clock_raw(clock);
//     uint64_t received = wirestamp_clock_raw(clock);
//     struct wirestamp_clock_span delay;
//     wirestamp_clock_elapsed(clock, sent, received, &delay);
//
// Compile with: cc program.c $(pkg-config --cflags --libs wirestamp_clock)
//
// Units. Raw values are ticks of the counter. Everything else is in nanoseconds, unless its name
// has another unit. Time of day is CLOCK_REALTIME, and an error is against that clock. Its distance
// from true UTC is known only to the program that synchronises it. A second in a span is one of
// CLOCK_MONOTONIC_RAW. An error is half the width of an interval that is meant to contain every
// time, not the average.
//
// Threads. All functions may be called from all threads at once, with the same clock, except that
// wirestamp_clock_close must be the last one that uses it. Functions that read or convert take no
// lock. Raw values can be passed between threads: the counter is the same for all.
//
// Fork. A child process has no calibrating thread. A clock opened before the fork continues in the
// child from its state at the fork, with growing errors, and may be closed there. For smaller errors
// the child opens its own clock.
//
// Cost. A raw value costs a read of the counter and a function call.
//
// Errors. Functions return them, and none throws. Every pointer is checked for NULL. The caller must
// ensure that it points to a valid object.
//
// This file is generated; its source is crates/clock-c.


#ifndef WIRESTAMP_CLOCK_H
#define WIRESTAMP_CLOCK_H

#include <stddef.h>
#include <stdint.h>

// Return value of a function: 0 on success.
enum wirestamp_clock_error {
  // Success.
  WIRESTAMP_CLOCK_ERROR_NONE = 0,
  // A required pointer is NULL.
  WIRESTAMP_CLOCK_ERROR_NULL_POINTER = 1,
  // There is no counter with this name.
  WIRESTAMP_CLOCK_ERROR_UNKNOWN_SOURCE = 2,
  // The counter with this name is not usable or not trusted on this machine, or the process stamps with another
  // one already.
  WIRESTAMP_CLOCK_ERROR_UNUSABLE_SOURCE = 3,
  // The clock cannot be started: its counter does not run correctly, or no thread can be created.
  WIRESTAMP_CLOCK_ERROR_NOT_STARTED = 4,
  // An error in this library. Standard error has details.
  WIRESTAMP_CLOCK_ERROR_INTERNAL = 5,
  // The value of the counter at that time is not known.
  WIRESTAMP_CLOCK_ERROR_UNKNOWN_RAW = 6,
};

// A counter that its own thread calibrates against the system clock.
struct wirestamp_clock;

// The status of a clock.
struct wirestamp_clock_status {
  // The counter in use, as a text that is valid until the clock is closed.
  const char *selected;
  // Frequency in Hz, measured against CLOCK_MONOTONIC_RAW.
  double frequency_hz;
  // Error bound of that frequency, in parts per million.
  double rate_error_ppm;
  // Error bound against CLOCK_REALTIME of a stamp that is taken and converted now, in nanoseconds.
  int64_t error_ns;
  // Smallest usual step of the counter, in nanoseconds, rounded up.
  int64_t granularity_ns;
  // Steps of the system clock and disruptions of the counter since the clock was opened. If the number is the same
  // before and after a measurement, there was no step of more than 125 to 250 us in between (500 ppm of the time
  // between two samples, twice that against a slew in the other direction). Detection takes up to 250 ms.
  uint32_t steps;
};

// A time with its error bound.
struct wirestamp_clock_stamp {
  // CLOCK_REALTIME, in nanoseconds since 1970-01-01 00:00 UTC.
  int64_t utc_ns;
  // Half the width of the interval around it that contains the true reading of CLOCK_REALTIME, in nanoseconds;
  // INT64_MAX without a bound.
  int64_t error_ns;
};

// A distance in time with its error bound.
struct wirestamp_clock_span {
  // In nanoseconds, signed.
  int64_t ns;
  // Half the width of the interval around it that contains the true span by CLOCK_MONOTONIC_RAW, in nanoseconds;
  // INT64_MAX without a bound.
  int64_t error_ns;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Short description of an error, for every value of `error`. The text is never freed.
const char *wirestamp_clock_strerror(int error);

// Message of the last failed function on the calling thread, in one line: the action, the object, the cause and
// often the next step. Empty if none failed. Successful functions do not change it. The text is valid until a
// function fails on the same thread, or the thread ends.
const char *wirestamp_clock_last_error(void);

// Opens a clock and writes it to `*clock`, or NULL on failure. Takes about 0.5 ms, and the first time in a process
// some milliseconds more. The clock is usable at once; its errors are large at first and shrink within the first
// second.
//
// `source` names the counter: "tsc", "cntvct", "hpet" or "os", if it exists and is trusted on this machine. NULL
// selects the best one. A process stamps with one counter: the first that was opened, even after it was closed.
// Clocks of that counter can be opened repeatedly; each has a thread.
enum wirestamp_clock_error wirestamp_clock_open(const char *source,
                                                struct wirestamp_clock **clock);

// Closes a clock and ends its thread. No other function may use the clock at the same time or later. Does nothing
// for NULL.
void wirestamp_clock_close(struct wirestamp_clock *clock);

// The counter's current value in ticks, for later conversion: the cheapest stamp. The CPU may reorder it with the
// instructions around the call: by 10 to 30 ns, and by up to 100 ns past a load that misses all caches. 0 if `clock`
// is NULL.
uint64_t wirestamp_clock_raw(const struct wirestamp_clock *clock);

// The counter's value, read after all earlier and before all later instructions. Its fences cost more than the read
// itself. 0 if `clock` is NULL.
uint64_t wirestamp_clock_raw_ordered(const struct wirestamp_clock *clock);

// Writes the current status of the clock to `*status`.
enum wirestamp_clock_error wirestamp_clock_get_status(const struct wirestamp_clock *clock,
                                                      struct wirestamp_clock_status *status);

// The time of day, in nanoseconds since 1970-01-01 00:00 UTC. It follows CLOCK_REALTIME without jumps and never goes
// back on one thread, unless CLOCK_REALTIME is stepped. 0 if `clock` is NULL.
int64_t wirestamp_clock_now(const struct wirestamp_clock *clock);

// As wirestamp_clock_now, read after all earlier and before all later instructions: never earlier than a time that
// another thread read in this way and passed on. 0 if `clock` is NULL.
int64_t wirestamp_clock_now_ordered(const struct wirestamp_clock *clock);

// Writes the time of day, as wirestamp_clock_now returns it, with its error to `*stamp`.
enum wirestamp_clock_error wirestamp_clock_now_with_error(const struct wirestamp_clock *clock,
                                                          struct wirestamp_clock_stamp *stamp);

// Writes the time at which the counter had the value `raw` to `*stamp`. Every value has a result. The error is
// smallest within the last minute and grows beyond it. If wirestamp_clock_is_exact returns 1, the time is the kernel's
// own, with an error of 2 ns for the last seconds. Otherwise a value converted again one second after it was read has
// a smaller error, because later samples exist.
enum wirestamp_clock_error wirestamp_clock_convert(const struct wirestamp_clock *clock,
                                                   uint64_t raw,
                                                   struct wirestamp_clock_stamp *stamp);

// Converts `count` values of `raw` to the same number of `stamps`, in the same order. Cheaper per value than
// wirestamp_clock_convert, mainly for ascending values. The two arrays must not overlap. If `count` is 0, nothing
// happens, and both may be NULL.
enum wirestamp_clock_error wirestamp_clock_convert_many(const struct wirestamp_clock *clock,
                                                        const uint64_t *raw,
                                                        size_t count,
                                                        struct wirestamp_clock_stamp *stamps);

// Writes the time from the raw value `from` to the raw value `to` to `*span`; negative if `to` was read first. It is
// computed in ticks and scaled by the counter's rate, without the time of day, so that it is independent of slewing
// and stepping of the system clock.
enum wirestamp_clock_error wirestamp_clock_elapsed(const struct wirestamp_clock *clock,
                                                   uint64_t from,
                                                   uint64_t to,
                                                   struct wirestamp_clock_span *span);

// 1 if the newest raw values are converted by the data with which the kernel itself converts the counter, 0 if by
// samples of its clocks: the kernel then publishes no such data for this counter, or the data failed a check, which is
// made at least every 50 ms. 0 if `clock` is NULL.
int wirestamp_clock_is_exact(const struct wirestamp_clock *clock);

// Writes the raw value at which CLOCK_REALTIME showed `ns` nanoseconds since 1970 to `*raw`, within 5 ns: the inverse of
// wirestamp_clock_convert, for stamps of the kernel (SO_TIMESTAMPNS). The time must be one of the last seconds. A time
// that the clock showed twice, because it was set back, is taken as the later one.
//
// Fails with UNKNOWN_RAW if wirestamp_clock_is_exact returns 0, for other times, and for those around a step of the
// clock.
enum wirestamp_clock_error wirestamp_clock_raw_of_realtime(const struct wirestamp_clock *clock,
                                                           int64_t ns,
                                                           uint64_t *raw);

// As wirestamp_clock_raw_of_realtime, for CLOCK_MONOTONIC, which BPF programs read (bpf_ktime_get_ns). It is never
// stepped.
enum wirestamp_clock_error wirestamp_clock_raw_of_monotonic(const struct wirestamp_clock *clock,
                                                            int64_t ns,
                                                            uint64_t *raw);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WIRESTAMP_CLOCK_H */
