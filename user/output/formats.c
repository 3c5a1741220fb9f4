// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "output/output.h"
#include "output/output_file.h"

const struct output_format *const output_formats[] = {
	&output_html, &output_folded, &output_pprof, &output_speedscope, &output_text, NULL,
};

const struct output_format *output__by_name(const char *name)
{
	for (int i = 0; output_formats[i]; i++)
		if (!strcmp(output_formats[i]->name, name))
			return output_formats[i];
	return NULL;
}

static bool ends_with(const char *path, const char *ending)
{
	size_t length = strlen(path), ending_length = strlen(ending);

	return length >= ending_length && !strcmp(path + length - ending_length, ending);
}

struct written {
	const struct output_format *format;
	const struct profile *profile;
	const struct output_options *options;
};

static int write_profile(const void *what, FILE *file)
{
	const struct written *written = what;

	return written->format->write(written->profile, written->options, file);
}

int output__write(const struct output_format *format, const struct profile *profile,
		  const struct output_options *options, const char *path)
{
	const struct written written = { format, profile, options };

	return output_file__write(path, write_profile, &written);
}

int output__write_or_say(const struct output_format *format, const struct profile *profile,
			 const struct output_options *options, const char *path)
{
	int error = output__write(format, profile, options, path);

	if (error)
		log__error("cannot write %s: %s", output_file__shown(path), strerror(-error));
	else if (strcmp(path, "-") != 0)
		log__info("wrote %s%s%s", path, format->use ? ": " : "", format->use ?: "");
	return error;
}

const struct output_format *output__by_ending(const char *path)
{
	for (int i = 0; output_formats[i]; i++)
		for (const char *const *ending = output_formats[i]->endings; *ending; ending++)
			if (ends_with(path, *ending))
				return output_formats[i];
	return NULL;
}

char *output__refuse_events(const struct output_format *format, size_t count)
{
	const char *separator = "";
	char *wrong, *names;
	size_t size;
	FILE *stream;

	if (count < 2 || format->holds_events)
		return NULL;
	stream = xopen_memstream(&names, &size);
	for (const struct output_format *const *other = output_formats; *other; other++) {
		if (!(*other)->holds_events)
			continue;
		fprintf(stream, "%s%s", separator, (*other)->name);
		separator = " or ";
	}
	fclose(stream);
	wrong = xasprintf("%s shows one event: choose it with --show EVENT, or use -f %s",
			  format->name, names);
	free(names);
	return wrong;
}
