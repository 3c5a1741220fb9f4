// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>
#include <yaml.h>

#include "agent/config_file.h"
#include "base/xalloc.h"

struct reader {
	const char *path;
	yaml_parser_t parser;
	yaml_event_t event;
	config_file__take *take;
	void *context;
	char *wrong; /* what went wrong first */
};

/* What is wrong in the line that was read last. */
static void refuse(struct reader *reader, const char *what)
{
	if (!reader->wrong)
		reader->wrong = xasprintf("%s:%zu: %s", reader->path,
					  reader->event.start_mark.line + 1, what);
}

static void refuse_syntax(struct reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;

	if (parser->error == YAML_MEMORY_ERROR)
		out_of_memory();
	if (parser->error == YAML_READER_ERROR)
		reader->wrong = xasprintf("%s: not UTF-8 text: %s, at byte %zu", reader->path,
					  parser->problem, parser->problem_offset);
	else
		reader->wrong = xasprintf("%s:%zu: %s", reader->path, parser->problem_mark.line + 1,
					  parser->problem ? parser->problem : "unreadable");
}

/* Goes to the next event, and returns its type; YAML_NO_EVENT where something is wrong. */
static yaml_event_type_t next(struct reader *reader)
{
	yaml_event_delete(&reader->event);
	if (reader->wrong)
		return YAML_NO_EVENT;
	if (!yaml_parser_parse(&reader->parser, &reader->event)) {
		refuse_syntax(reader);
		return YAML_NO_EVENT;
	}
	return reader->event.type;
}

/* "key:" and "key: ~" say nothing. */
static bool is_null(const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;

	return event->data.scalar.plain_implicit &&
	       (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

/* The scalar of the event, which is KEY's; NULL where it is none. */
static const char *value_of(struct reader *reader, const char *key)
{
	const yaml_event_t *event = &reader->event;
	const char *text = (const char *)event->data.scalar.value;
	char *wrong = NULL;

	if (is_null(event))
		wrong = xasprintf("'%s' needs a value", key);
	else if (strlen(text) != event->data.scalar.length)
		wrong = xasprintf("the value of '%s' contains a NUL byte", key);
	if (!wrong)
		return text;
	refuse(reader, wrong);
	free(wrong);
	return NULL;
}

static void take_value(struct reader *reader, const char *key)
{
	const char *value = value_of(reader, key);
	char *wrong = value ? reader->take(reader->context, key, value, false,
					   reader->event.start_mark.line + 1)
			    : NULL;

	if (wrong)
		refuse(reader, wrong);
	free(wrong);
}

/* The value, or list of them, of a rule's KEY; NULL where it has none. */
static json_t *read_part(struct reader *reader, const char *key)
{
	json_t *list;
	yaml_event_type_t type = next(reader);
	const char *value;

	if (type == YAML_SCALAR_EVENT) {
		value = value_of(reader, key);
		return value ? json_string(value) : NULL;
	}
	if (type != YAML_SEQUENCE_START_EVENT) {
		refuse(reader, "a rule may hold only values and lists of values");
		return NULL;
	}
	list = json_array();
	while ((type = next(reader)) == YAML_SCALAR_EVENT && (value = value_of(reader, key)))
		json_array_append_new(list, json_string(value));
	if (type != YAML_SEQUENCE_END_EVENT)
		refuse(reader, "a rule's list may have plain values only");
	return list;
}

/* The rule, which has begun. */
static json_t *read_rule(struct reader *reader)
{
	json_t *rule = json_object();
	yaml_event_type_t type;

	while ((type = next(reader)) == YAML_SCALAR_EVENT) {
		char *key = xstrdup((const char *)reader->event.data.scalar.value);

		if (json_object_get(rule, key))
			refuse(reader, "the rule has this key twice");
		json_object_set_new(rule, key, read_part(reader, key));
		free(key);
	}
	if (type != YAML_MAPPING_END_EVENT)
		refuse(reader, "a rule's key must be a plain word");
	return rule;
}

static void take_rule(struct reader *reader, const char *key)
{
	unsigned int line = reader->event.start_mark.line + 1;
	json_t *rule = read_rule(reader);
	char *text = json_dumps(rule, 0), *wrong = NULL;

	if (!reader->wrong)
		wrong = reader->take(reader->context, key, text, true, line);
	if (wrong)
		reader->wrong = xasprintf("%s:%u: %s", reader->path, line, wrong);
	free(wrong);
	free(text);
	json_decref(rule);
}

static void take_list(struct reader *reader, const char *key)
{
	yaml_event_type_t type;

	while ((type = next(reader)) == YAML_SCALAR_EVENT || type == YAML_MAPPING_START_EVENT) {
		if (type == YAML_SCALAR_EVENT)
			take_value(reader, key);
		else
			take_rule(reader, key);
	}
	if (type != YAML_SEQUENCE_END_EVENT)
		refuse(reader, "a list may hold only values and rules");
}

static void take_entry(struct reader *reader)
{
	char *key = xstrdup((const char *)reader->event.data.scalar.value);

	if (strlen(key) != reader->event.data.scalar.length)
		refuse(reader, "a key contains a NUL byte");
	switch (next(reader)) {
	case YAML_SCALAR_EVENT:
		take_value(reader, key);
		break;
	case YAML_SEQUENCE_START_EVENT:
		take_list(reader, key);
		break;
	default:
		refuse(reader, "the value of a key must be a scalar or a list");
	}
	free(key);
}

static void take_mapping(struct reader *reader)
{
	yaml_event_type_t type;

	while ((type = next(reader)) == YAML_SCALAR_EVENT)
		take_entry(reader);
	if (type != YAML_MAPPING_END_EVENT)
		refuse(reader, "a key must be a plain word");
}

/* A file without anything but comments is one, too. */
static void take_document(struct reader *reader)
{
	yaml_event_type_t type = next(reader);

	if (type == YAML_STREAM_START_EVENT)
		type = next(reader);
	if (type == YAML_STREAM_END_EVENT)
		return;
	if (next(reader) != YAML_MAPPING_START_EVENT) {
		refuse(reader, "the file must be a list of lines such as `rate: 19`");
		return;
	}
	take_mapping(reader);
	if (next(reader) == YAML_DOCUMENT_END_EVENT && next(reader) != YAML_STREAM_END_EVENT)
		refuse(reader, "the file has more than one YAML document");
}

/* What PATH is that is no file: nobody may ever write into a pipe, and what was read from one is
 * gone when it is to be read again.  NULL: nothing of the kind. */
static const char *kind_of(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return NULL;
	return S_ISFIFO(status.st_mode) ? "pipe" : S_ISDIR(status.st_mode) ? "directory" : NULL;
}

char *config_file__read(const char *path, config_file__take *take, void *context)
{
	struct reader reader = { .path = path, .take = take, .context = context };
	const char *kind = kind_of(path);
	FILE *file;

	if (kind)
		return xasprintf("the configuration %s is a %s, not a file", path, kind);
	file = fopen(path, "re");
	if (!file && errno == ENOMEM)
		out_of_memory();
	if (!file)
		return xasprintf("cannot read the configuration %s: %s", path, strerror(errno));
	if (!yaml_parser_initialize(&reader.parser))
		out_of_memory();
	yaml_parser_set_input_file(&reader.parser, file);
	take_document(&reader);
	yaml_event_delete(&reader.event);
	yaml_parser_delete(&reader.parser);
	fclose(file);
	return reader.wrong;
}
