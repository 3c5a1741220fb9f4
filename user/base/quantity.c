// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/quantity.h"
#include "base/xalloc.h"

#define NS_PER_S 1000000000LL

/* Ten years.  More is a mistake, or an attempt to overflow. */
#define DURATION_S_MAX (10 * 365 * 86400.0)

#define SIZE_BYTES_MIN (1ULL << 20)
#define SIZE_BYTES_MAX (1ULL << 46)

bool quantity__number(const char *text, double *number, char **end)
{
	errno = 0;
	*number = strtod(text, end);
	return *end != text && !errno && isfinite(*number);
}

bool quantity__duration(const char *text, double *seconds)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = { { "", 1 },     { "s", 1 },    { "ms", 1e-3 }, { "us", 1e-6 }, { "m", 60 },
		      { "min", 60 }, { "h", 3600 }, { "d", 86400 }, { "w", 604800 } };
	char *end;

	if (!quantity__number(text, seconds, &end) || *seconds <= 0)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) == 0) {
			*seconds *= units[i].seconds;
			return *seconds <= DURATION_S_MAX;
		}
	}
	return false;
}

bool quantity__size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *unit;
	double number;
	char *end;

	if (!quantity__number(text, &number, &end))
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (*end && (!unit || end[1]))
		return false;
	for (const char *at = units; unit && at <= unit; at++)
		number *= 1024;
	if (number < SIZE_BYTES_MIN || number > SIZE_BYTES_MAX)
		return false;
	*bytes = (uint64_t)number;
	return true;
}

/* Takes a fraction of a second such as ".25" from *AT.  Returns whole nanoseconds. */
static int64_t take_fraction(const char **at)
{
	int64_t part = NS_PER_S, ns = 0;

	if (**at != '.' || !isdigit((unsigned char)(*at)[1]))
		return 0;
	for ((*at)++; isdigit((unsigned char)**at); (*at)++) {
		part /= 10;
		ns += (**at - '0') * part;
	}
	return ns;
}

/* Takes a zone such as "Z" or "+02:00" from *AT.  *EAST_S is how far it is east of UTC. */
static bool take_zone(const char **at, long *east_s)
{
	char sign = **at;
	unsigned int hours, minutes;
	int length = 0;

	*east_s = 0;
	if (sign == 'Z' || sign == 'z') {
		(*at)++;
		return true;
	}
	if ((sign != '+' && sign != '-') ||
	    sscanf(*at + 1, "%2u:%2u%n", &hours, &minutes, &length) != 2 || length != 5 ||
	    hours > 23 || minutes > 59)
		return false;
	*at += 1 + length;
	*east_s = (hours * 3600L + minutes * 60L) * (sign == '-' ? -1 : 1);
	return true;
}

/* Takes "01:20", "01:20:30" or "01:20:30.5" from *AT. */
static bool take_time(const char **at, struct tm *parts, int64_t *fraction)
{
	const char *end = strptime(*at, "%H:%M", parts), *seconds;

	*fraction = 0;
	if (!end)
		return false;
	seconds = *end == ':' ? strptime(end, ":%S", parts) : NULL;
	*at = seconds ?: end;
	if (seconds)
		*fraction = take_fraction(at);
	return true;
}

/* Converts PARTS to seconds since 1970.  EAST_S is the zone; NULL: local time. */
static bool to_seconds(const struct tm *parts, const long *east_s, time_t *seconds)
{
	struct tm same = *parts;

	same.tm_isdst = -1;
	*seconds = east_s ? timegm(&same) - *east_s : mktime(&same);
	/* The C library turns a 30 February into another day. */
	return same.tm_mday == parts->tm_mday && *seconds >= 0 &&
	       *seconds <= INT64_MAX / NS_PER_S - 86400;
}

/* Parses a date, with or without a time and a zone. */
static bool parse_date(const char *text, int64_t *unix_ns)
{
	struct tm parts = { 0 };
	const char *at = strptime(text, "%Y-%m-%d", &parts);
	int64_t fraction = 0;
	bool is_zoned = false;
	time_t seconds;
	long east_s;

	if (!at)
		return false;
	if (*at && strchr("Tt ", *at)) {
		at++;
		if (!take_time(&at, &parts, &fraction))
			return false;
		is_zoned = take_zone(&at, &east_s);
	}
	if (*at || !to_seconds(&parts, is_zoned ? &east_s : NULL, &seconds))
		return false;
	*unix_ns = seconds * NS_PER_S + fraction;
	return true;
}

/* Finds the last moment that has the time of day TEXT. */
static bool parse_time(const char *text, int64_t now_unix_ns, int64_t *unix_ns)
{
	time_t now = now_unix_ns / NS_PER_S, seconds;
	struct tm parts;
	int64_t fraction;

	localtime_r(&now, &parts);
	parts.tm_sec = 0;
	if (!take_time(&text, &parts, &fraction) || *text)
		return false;
	for (int tries = 0; tries < 2; tries++) {
		struct tm same = parts;

		same.tm_isdst = -1;
		seconds = mktime(&same);
		*unix_ns = seconds * NS_PER_S + fraction;
		if (*unix_ns <= now_unix_ns)
			break;
		parts.tm_mday--;
	}
	return true;
}

bool quantity__moment(const char *text, int64_t now_unix_ns, int64_t *unix_ns)
{
	double ago_s;

	if (!quantity__duration(text, &ago_s))
		return parse_date(text, unix_ns) || parse_time(text, now_unix_ns, unix_ns);
	*unix_ns = now_unix_ns - (int64_t)(ago_s * NS_PER_S);
	return true;
}

char *quantity__moment_text(int64_t unix_ns)
{
	time_t seconds = unix_ns / NS_PER_S;
	struct tm parts;
	char text[64];

	gmtime_r(&seconds, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return xstrdup(text);
}
