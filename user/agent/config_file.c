// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "config_file.h"
#include "xalloc.h"

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

	if (parser->error == YAML_READER_ERROR)
		reader->wrong = xasprintf("%s: no text in UTF-8: %s, at byte %zu", reader->path,
					  parser->problem, parser->problem_offset);
	else
		reader->wrong = xasprintf("%s:%zu: %s", reader->path, parser->problem_mark.line + 1,
					  parser->problem ? parser->problem : "no memory for it");
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

/* The scalar of the event. */
static void take_value(struct reader *reader, const char *key)
{
	const yaml_event_t *event = &reader->event;
	const char *text = (const char *)event->data.scalar.value;
	char *wrong;

	if (is_null(event))
		wrong = xasprintf("'%s' needs a value", key);
	else if (strlen(text) != event->data.scalar.length)
		wrong = xasprintf("the value of '%s' has a NUL", key);
	else
		wrong = reader->take(reader->context, key, text, event->start_mark.line + 1);
	if (wrong)
		refuse(reader, wrong);
	free(wrong);
}

static void take_list(struct reader *reader, const char *key)
{
	yaml_event_type_t type;

	while ((type = next(reader)) == YAML_SCALAR_EVENT)
		take_value(reader, key);
	if (type != YAML_SEQUENCE_END_EVENT)
		refuse(reader, "a list may have plain values only");
}

static void take_entry(struct reader *reader)
{
	char *key = xstrdup((const char *)reader->event.data.scalar.value);

	switch (next(reader)) {
	case YAML_SCALAR_EVENT:
		take_value(reader, key);
		break;
	case YAML_SEQUENCE_START_EVENT:
		take_list(reader, key);
		break;
	default:
		refuse(reader, "what stands behind a key is to be a value, or a list of them");
	}
	free(key);
}

static void take_mapping(struct reader *reader)
{
	yaml_event_type_t type;

	while ((type = next(reader)) == YAML_SCALAR_EVENT)
		take_entry(reader);
	if (type != YAML_MAPPING_END_EVENT)
		refuse(reader, "a key is to be a plain word");
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
		refuse(reader, "the file is to be a list of lines such as `rate: 19`");
		return;
	}
	take_mapping(reader);
	if (next(reader) == YAML_DOCUMENT_END_EVENT && next(reader) != YAML_STREAM_END_EVENT)
		refuse(reader, "there is a second document");
}

char *config_file__read(const char *path, config_file__take *take, void *context)
{
	struct reader reader = { .path = path, .take = take, .context = context };
	FILE *file = fopen(path, "re");

	if (!file)
		return xasprintf("the configuration %s cannot be read: %s", path, strerror(errno));
	if (!yaml_parser_initialize(&reader.parser)) {
		fclose(file);
		return xasprintf("%s: no memory to read it", path);
	}
	yaml_parser_set_input_file(&reader.parser, file);
	take_document(&reader);
	yaml_event_delete(&reader.event);
	yaml_parser_delete(&reader.parser);
	fclose(file);
	return reader.wrong;
}
