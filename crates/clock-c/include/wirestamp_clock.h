// libwirestamp_clock: a clock to stamp events with.
//
// An event is stamped with the raw value of the cheapest counter that can be trusted, and the value
// is converted later, into the time of day and a bound of its error. A thread of the library
// compares the counter with the system's clocks four times a second. Of the Rust library, C does
// not have yet: the survey of the counters, the file of anchors, sleeping until a tick, and what a
// hypervisor says by VMClock.
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
// says otherwise. Time of day is CLOCK_REALTIME, and an error is against that clock: how far it is
// from true UTC is known to whoever synchronises it. A second in a span is one of
// CLOCK_MONOTONIC_RAW. An error is half the width of an interval that is meant to hold every time,
// not on average.
//
// Threads. All functions may be called from all threads at once, with the same clock, except that
// wirestamp_clock_close must be the last one that uses it. Those that read or convert take no lock.
// Raw values can be passed between threads: the counter is the same for all.
//
// Fork. A child process has no calibrating thread. A clock opened before the fork goes on in the
// child along what was known then, with errors that grow, and may be closed there; the child opens
// one of its own to do better.
//
// Cost. A raw value costs what reading the counter costs, and the call of a function.
//
// Errors. Functions return them, and none throws. Every pointer is checked for NULL; that it points
// to what it should is the caller's part.
//
// This file is generated; its source is crates/clock-c.


#ifndef WIRESTAMP_CLOCK_H
#define WIRESTAMP_CLOCK_H

#include <stddef.h>
#include <stdint.h>

// What a function returns: 0 if it did what it is for.
enum wirestamp_clock_error {
  // All is well.
  WIRESTAMP_CLOCK_ERROR_NONE = 0,
  // A pointer that must not be NULL is.
  WIRESTAMP_CLOCK_ERROR_NULL_POINTER = 1,
  // There is no counter of the name that was given.
  WIRESTAMP_CLOCK_ERROR_UNKNOWN_SOURCE = 2,
  // The counter of that name cannot be used or trusted on this machine, or the process stamps
  // with another one already.
  WIRESTAMP_CLOCK_ERROR_UNUSABLE_SOURCE = 3,
  // The clock cannot be started: its counter does not run as it should, or there is no thread
  // to be had.
  WIRESTAMP_CLOCK_ERROR_NOT_STARTED = 4,
  // An error in this library. Standard error tells more.
  WIRESTAMP_CLOCK_ERROR_INTERNAL = 5,
};

// A counter that is calibrated against the system clock by a thread of its own.
struct wirestamp_clock;

// The state of a clock.
struct wirestamp_clock_status {
  // The counter in use, as a text that is good until the clock is closed.
  const char *selected;
  // Its frequency in Hz, measured against CLOCK_MONOTONIC_RAW.
  double frequency_hz;
  // How far that frequency can be off, in parts per million.
  double rate_error_ppm;
  // How far a stamp that is taken and converted now can be off from CLOCK_REALTIME, in
  // nanoseconds.
  int64_t error_ns;
  // The smallest usual step of the counter, in nanoseconds, rounded up.
  int64_t granularity_ns;
  // Steps of the system clock and disruptions of the counter since the clock was opened. If it
  // is the same after a measurement as it was before, there was no step in between that is
  // larger than 125 to 250 us (500 ppm of the time between two samples, twice that against a
  // slew the other way), as far as it could be noticed: that takes up to 250 ms.
  uint32_t steps;
};

// A time, and how far off it can be.
struct wirestamp_clock_stamp {
  // CLOCK_REALTIME, in nanoseconds since 1970-01-01 00:00 UTC.
  int64_t utc_ns;
  // Half the width of the interval around it that holds the true reading of CLOCK_REALTIME, in
  // nanoseconds; INT64_MAX if there is no bound.
  int64_t error_ns;
};

// A distance in time, and how far off it can be.
struct wirestamp_clock_span {
  // In nanoseconds, signed.
  int64_t ns;
  // Half the width of the interval around it that holds the true span by CLOCK_MONOTONIC_RAW, in
  // nanoseconds; INT64_MAX if there is no bound.
  int64_t error_ns;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The meaning of an error in a few words, for every value of `error`. The text is never freed.
const char *wirestamp_clock_strerror(int error);

// What the last function that failed on the calling thread has to say, in one line: what happened
// to which thing, and often what to do about it. Empty if none failed. Functions that succeed
// leave it as it is. The text is good until a function fails on the same thread, or that ends.
const char *wirestamp_clock_last_error(void);

// Opens a clock and writes it to `*clock`, or NULL if that fails. Takes about 0.5 ms, and the
// first time in a process some milliseconds more. The clock can be used at once; its errors are
// wide at first and shrink over the first second.
//
// `source` names the counter: "tsc", "cntvct", "hpet" or "os", as far as the machine has them and
// can trust them. NULL has the best one chosen. A process stamps with one counter: the first that
// was opened, also after it was closed. Clocks of that one can be opened again, and each has a
// thread.
enum wirestamp_clock_error wirestamp_clock_open(const char *source, struct wirestamp_clock **clock);

// Closes a clock and ends its thread. No other function may be using the clock, or use it later.
// Does nothing for NULL.
void wirestamp_clock_close(struct wirestamp_clock *clock);

// The counter's present value in its own ticks, to be converted later: the cheapest stamp there
// is. The CPU may reorder it with what stands around the call: by some 10 to 30 ns, and at worst by
// 100 ns, past a load that misses all caches. 0 if `clock` is NULL.
uint64_t wirestamp_clock_raw(const struct wirestamp_clock *clock);

// The counter's value read after everything earlier in the program and before anything later. The
// fences for that cost more than the read itself. 0 if `clock` is NULL.
uint64_t wirestamp_clock_raw_ordered(const struct wirestamp_clock *clock);

// Writes the present state of the clock to `*status`.
enum wirestamp_clock_error wirestamp_clock_get_status(const struct wirestamp_clock *clock,
                                                      struct wirestamp_clock_status *status);

// The time of day, in nanoseconds since 1970-01-01 00:00 UTC. It follows CLOCK_REALTIME without a
// jump and never goes back on one thread, unless CLOCK_REALTIME is stepped. 0 if `clock` is NULL.
int64_t wirestamp_clock_now(const struct wirestamp_clock *clock);

// As wirestamp_clock_now, read after everything earlier in the program and before anything later:
// never earlier than a time that another thread read so and passed on. 0 if `clock` is NULL.
int64_t wirestamp_clock_now_ordered(const struct wirestamp_clock *clock);

// Writes the time of day, as wirestamp_clock_now gives it, and its error to `*stamp`.
enum wirestamp_clock_error wirestamp_clock_now_with_error(const struct wirestamp_clock *clock,
                                                          struct wirestamp_clock_stamp *stamp);

// Writes the time at which the counter had the value `raw` to `*stamp`. Every value has an answer.
// The error is least within the last minute and grows beyond it; a value that is converted again a
// second after it was read has a smaller error, because its future is known then.
enum wirestamp_clock_error wirestamp_clock_convert(const struct wirestamp_clock *clock,
                                                   uint64_t raw,
                                                   struct wirestamp_clock_stamp *stamp);

// Converts `count` values of `raw` to as many `stamps`, in the same order. That is cheaper for
// each than wirestamp_clock_convert, most of all if they ascend. The two arrays must not overlap.
// If `count` is 0, nothing is done, and both may be NULL.
enum wirestamp_clock_error wirestamp_clock_convert_many(const struct wirestamp_clock *clock,
                                                        const uint64_t *raw,
                                                        size_t count,
                                                        struct wirestamp_clock_stamp *stamps);

// Writes the time from the raw value `from` to the raw value `to` to `*span`; negative if `to` was
// read first. It is taken in ticks and scaled by the counter's rate, without the time of day in
// between, so that no slewing or stepping of the system clock is in it.
enum wirestamp_clock_error wirestamp_clock_elapsed(const struct wirestamp_clock *clock,
                                                   uint64_t from,
                                                   uint64_t to,
                                                   struct wirestamp_clock_span *span);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WIRESTAMP_CLOCK_H */
