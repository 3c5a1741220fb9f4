// SPDX-License-Identifier: BSD-2-Clause
/*
 * A configuration file: a YAML mapping of options to values, to lists of values, or to lists of
 * rules.  A rule becomes JSON, as on the command line.
 *
 *	store: /var/lib/pybpfprof
 *	rate: 49
 *	exclude: [comm=make, uid=1000]
 *	relabel:
 *	  - source_labels: [comm]
 *	    regex: sh
 *	    action: drop
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>
#include <yaml.h>

#include "base/xalloc.h"
#include "options/option_table.h"
#include "profile/plain_text.h"
#include "python/unicode.h"

#define PLAIN                                                  \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" \
	"0123456789./_-+"

/* In YAML it is a string only in quotes.  So is "~", but that is not in PLAIN. */
#define NULL_VALUE "null"

struct reader {
	const struct verb *verb;
	const char *path;
	struct settings *settings;
	yaml_parser_t parser;
	yaml_event_t event; /* the present one */
	char *wrong;	    /* the first error */
};

/* Notes the error WHAT at the present event, unless an error came before.  WHAT NULL: no error.
 * Frees WHAT. */
static void refuse(struct reader *reader, char *what)
{
	if (what && !reader->wrong)
		reader->wrong = xasprintf("%s:%zu: %s", reader->path,
					  reader->event.start_mark.line + 1, what);
	free(what);
}

static void note_error(struct reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;

	/* libyaml describes every error but a lack of memory. */
	if (!parser->problem)
		out_of_memory();
	if (parser->error == YAML_READER_ERROR)
		reader->wrong = xasprintf("%s: not UTF-8 text: %s, at byte %zu", reader->path,
					  parser->problem, parser->problem_offset);
	else
		reader->wrong = xasprintf("%s:%zu: %s", reader->path, parser->problem_mark.line + 1,
					  parser->problem);
}

/* Goes to the next event.  Returns false if that is END, or after an error.  Refuses aliases: they
 * could expand a small file to a large document. */
static bool next(struct reader *reader, yaml_event_type_t end)
{
	if (reader->wrong)
		return false;
	yaml_event_delete(&reader->event);
	if (!yaml_parser_parse(&reader->parser, &reader->event))
		note_error(reader);
	else if (reader->event.type == YAML_ALIAS_EVENT)
		refuse(reader, xstrdup("aliases are not supported"));
	return !reader->wrong && reader->event.type != end;
}

/* Returns the text of the event.  Refuses an event that is not a scalar or has no value, such as
 * "key: ~"; then, and after an earlier error, returns NULL. */
static const char *text_of(struct reader *reader)
{
	const yaml_event_t *event = &reader->event;
	const char *text = (const char *)event->data.scalar.value;

	if (event->type != YAML_SCALAR_EVENT)
		refuse(reader, xstrdup("a plain value belongs here"));
	else if (strlen(text) != event->data.scalar.length)
		refuse(reader, xstrdup("a value contains a NUL byte"));
	else if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
		 (!*text || strcmp(text, "~") == 0 || strcmp(text, NULL_VALUE) == 0))
		refuse(reader, xstrdup("a value is missing"));
	return reader->wrong ? NULL : text;
}

/* Converts the value that begins with the event to JSON.  After an error the result is incomplete
 * or NULL. */
static json_t *json_of(struct reader *reader)
{
	json_t *json;

	if (reader->event.type == YAML_SEQUENCE_START_EVENT) {
		json = json_array();
		while (next(reader, YAML_SEQUENCE_END_EVENT))
			json_array_append_new(json, json_of(reader));
		return json;
	}
	if (reader->event.type != YAML_MAPPING_START_EVENT)
		return json_string(text_of(reader));
	json = json_object();
	while (next(reader, YAML_MAPPING_END_EVENT)) {
		char *name = xstrdup(text_of(reader) ?: "");

		if (json_object_get(json, name))
			refuse(reader, xstrdup("the rule has this key twice"));
		if (next(reader, YAML_NO_EVENT))
			json_object_set_new(json, name, json_of(reader));
		free(name);
	}
	return json;
}

static void take_value(struct reader *reader, const struct option *option)
{
	char *place = xasprintf("%s:%zu", reader->path, reader->event.start_mark.line + 1);
	char *rule = NULL;
	const char *value;
	json_t *json;

	if (option->flags & OPTION_RULES && reader->event.type != YAML_MAPPING_START_EVENT) {
		refuse(reader, xasprintf("'%s' must be a list of rules", option->name));
	} else if (option->flags & OPTION_RULES) {
		json = json_of(reader);
		rule = json_dumps(json, 0);
		json_decref(json);
	}
	value = rule || reader->wrong ? rule : text_of(reader);
	if (!reader->wrong)
		refuse(reader, settings__try(reader->settings, option, ORIGIN_FILE, value, place));
	free(rule);
	free(place);
}

/* Takes the key NAME and its value. */
static void take_entry(struct reader *reader, const char *name)
{
	const struct option *option = option_table__find(reader->verb, name);

	if (!option || option->flags & OPTION_LOCAL)
		refuse(reader, xasprintf("unknown key '%s'", name));
	if (!next(reader, YAML_NO_EVENT))
		return;
	if (reader->event.type != YAML_SEQUENCE_START_EVENT)
		take_value(reader, option);
	else if (!(option->flags & (OPTION_LIST | OPTION_RULES)))
		refuse(reader, xasprintf("'%s' has one value, not a list", option->name));
	else
		while (next(reader, YAML_SEQUENCE_END_EVENT))
			take_value(reader, option);
}

static void take_document(struct reader *reader)
{
	json_t *lines = json_object(); /* by key */

	if (reader->event.type != YAML_MAPPING_START_EVENT)
		refuse(reader, xstrdup("the file must be a list of lines such as `rate: 19`"));
	while (next(reader, YAML_MAPPING_END_EVENT)) {
		const char *name = text_of(reader);
		const json_t *before = name ? json_object_get(lines, name) : NULL;

		if (before)
			refuse(reader, xasprintf("'%s' is already set at %s:%lld", name,
						 reader->path, json_integer_value(before)));
		if (reader->wrong)
			break;
		json_object_set_new(lines, name, json_integer(reader->event.start_mark.line + 1));
		take_entry(reader, name);
	}
	json_decref(lines);
}

static void read_stream(struct reader *reader, FILE *file)
{
	if (!yaml_parser_initialize(&reader->parser))
		out_of_memory();
	yaml_parser_set_input_file(&reader->parser, file);
	/* The starts of the stream, the document and its root.  An empty file has no document. */
	if (next(reader, YAML_NO_EVENT) && next(reader, YAML_STREAM_END_EVENT) &&
	    next(reader, YAML_NO_EVENT)) {
		take_document(reader);
		next(reader, YAML_NO_EVENT);
		if (next(reader, YAML_STREAM_END_EVENT))
			refuse(reader, xstrdup("the file has more than one YAML document"));
	}
	yaml_event_delete(&reader->event);
	yaml_parser_delete(&reader->parser);
}

char *config_file__read(const struct verb *verb, const char *path, struct settings *settings)
{
	struct reader reader = { .verb = verb, .path = path, .settings = settings };
	struct stat status;
	FILE *file;

	/* A read of a pipe may block, and the pipe is empty when the file is read again. */
	if (!stat(path, &status) && (S_ISFIFO(status.st_mode) || S_ISDIR(status.st_mode)))
		return xasprintf("the configuration %s is a %s, not a file", path,
				 S_ISFIFO(status.st_mode) ? "pipe" : "directory");
	file = fopen(path, "re");
	if (!file && errno == ENOMEM)
		out_of_memory();
	if (!file)
		return xasprintf("cannot read the configuration %s: %s", path, strerror(errno));
	read_stream(&reader, file);
	fclose(file);
	return reader.wrong;
}

void config_file__print(const struct option *option, const char *value, FILE *file)
{
	char *valid = unicode__sanitize(value, strlen(value)), *text, *escaped;
	json_t *json = option->flags & OPTION_RULES ? json_loads(value, 0, NULL) : NULL;

	if (!json && *value && !value[strspn(value, PLAIN)] && *value != '-' &&
	    strcmp(value, NULL_VALUE) != 0) {
		fputs(value, file);
	} else {
		/* A JSON string is valid YAML, except for characters that plain_text.c escapes. */
		json = json ?: json_string(valid);
		text = json_dumps(json, JSON_ENCODE_ANY);
		escaped = plain_text__escape(text, SIZE_MAX);
		fputs(escaped, file);
		free(escaped);
		free(text);
		json_decref(json);
	}
	free(valid);
}
