// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <stdio.h>
#include <time.h>

#include "base/xalloc.h"
#include "options/moment.h"
#include "options/options.h"

#define NS_PER_S 1000000000LL

/* Takes ".25" and the like from *AT, as nanoseconds; what is finer is cut. */
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

/* Takes "Z" or "+02:00" from *AT, as seconds to the east. */
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

static bool parse_rfc3339(const char *text, int64_t *unix_ns)
{
	struct tm parts = { 0 }, same;
	const char *at = strptime(text, "%Y-%m-%d", &parts);
	int64_t fraction;
	long east_s;
	time_t seconds;

	if (!at || (*at != 'T' && *at != 't' && *at != ' '))
		return false;
	at = strptime(at + 1, "%H:%M:%S", &parts);
	if (!at)
		return false;
	fraction = take_fraction(&at);
	if (!take_zone(&at, &east_s) || *at)
		return false;
	same = parts;
	seconds = timegm(&same);
	/* There is no 30 February. */
	if (same.tm_mday != parts.tm_mday || seconds < 0 || seconds > INT64_MAX / NS_PER_S - 86400)
		return false;
	*unix_ns = (seconds - east_s) * NS_PER_S + fraction;
	return true;
}

bool moment__parse(const char *text, int64_t now_unix_ns, int64_t *unix_ns)
{
	double ago_s;

	if (!options__parse_duration(text, &ago_s))
		return parse_rfc3339(text, unix_ns);
	*unix_ns = now_unix_ns - (int64_t)(ago_s * NS_PER_S);
	return true;
}

char *moment__text(int64_t unix_ns)
{
	time_t seconds = unix_ns / NS_PER_S;
	struct tm parts;
	char text[64];

	gmtime_r(&seconds, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return xstrdup(text);
}
