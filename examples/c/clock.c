// Times the reading of a file: two events are stamped, and converted when there is time for it.
//
//     cc clock.c $(pkg-config --cflags --libs wirestamp_clock) -o clock && ./clock

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <wirestamp_clock.h>

static const char *const FILE_NAME = "/proc/uptime";

static void check(enum wirestamp_clock_error error)
{
	if (error != WIRESTAMP_CLOCK_ERROR_NONE) {
		fprintf(stderr, "%s\n", wirestamp_clock_last_error());
		exit(EXIT_FAILURE);
	}
}

static void read_file(void)
{
	char line[64];
	FILE *file = fopen(FILE_NAME, "r");

	if (!file || !fgets(line, sizeof(line), file)) {
		perror(FILE_NAME);
		exit(EXIT_FAILURE);
	}
	fclose(file);
}

static void print_time(const char *what, struct wirestamp_clock_stamp stamp)
{
	const int64_t second = 1000000000;
	const time_t seconds = (time_t)(stamp.utc_ns / second);
	char text[32];

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime(&seconds));
	printf("%s %s.%09" PRId64 "Z +- %" PRId64 " ns\n", what, text, stamp.utc_ns % second,
	       stamp.error_ns);
}

int main(int argc, char **argv)
{
	struct wirestamp_clock *clock;
	struct wirestamp_clock_status status;
	struct wirestamp_clock_stamp begin, now;
	struct wirestamp_clock_span delay;
	uint64_t before, after;

	// The name of a counter may be given; otherwise the best one is chosen.
	check(wirestamp_clock_open(argc > 1 ? argv[1] : NULL, &clock));
	check(wirestamp_clock_get_status(clock, &status));
	printf("counter %s at %.0f Hz\n", status.selected, status.frequency_hz);

	before = wirestamp_clock_raw(clock);
	read_file();
	after = wirestamp_clock_raw(clock);

	check(wirestamp_clock_convert(clock, before, &begin));
	check(wirestamp_clock_elapsed(clock, before, after, &delay));
	check(wirestamp_clock_now_with_error(clock, &now));
	print_time("begin", begin);
	printf("delay %" PRId64 " ns +- %" PRId64 " ns\n", delay.ns, delay.error_ns);
	print_time("now", now);

	wirestamp_clock_close(clock);
	return EXIT_SUCCESS;
}
