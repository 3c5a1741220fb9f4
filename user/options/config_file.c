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

/* YAML takes it for a string only in quotes, like "~", which is not in PLAIN. */
#define NULL_VALUE "null"

struct reader {
	const struct verb *verb;
	const char *path;
	struct settings *settings;
	yaml_document_t document;
	size_t visits; /* of nodes, with repetitions */
	char *wrong;   /* the first error */
};

/* Notes the error WHAT at NODE, and takes WHAT over; NULL: there is none. */
static void refuse(struct reader *reader, const yaml_node_t *node, char *what)
{
	if (what && !reader->wrong)
		reader->wrong =
			xasprintf("%s:%zu: %s", reader->path, node->start_mark.line + 1, what);
	free(what);
}

/* Refuses aliases, which could expand a small file to a large document.  Without aliases, no node
 * is visited twice. */
static yaml_node_t *visit(struct reader *reader, int index)
{
	yaml_document_t *document = &reader->document;
	yaml_node_t *node = yaml_document_get_node(document, index);

	if (++reader->visits > (size_t)(document->nodes.top - document->nodes.start))
		refuse(reader, node, xstrdup("aliases are not supported"));
	return node;
}

/* The text of NODE.  Refuses a node that is not a scalar or that is empty, such as "key: ~", and
 * returns NULL. */
static const char *text_of(struct reader *reader, const yaml_node_t *node)
{
	const char *text = (const char *)node->data.scalar.value;

	if (node->type != YAML_SCALAR_NODE)
		refuse(reader, node, xstrdup("a plain value belongs here"));
	else if (strlen(text) != node->data.scalar.length)
		refuse(reader, node, xstrdup("a value contains a NUL byte"));
	else if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
		 (!*text || strcmp(text, "~") == 0 || strcmp(text, NULL_VALUE) == 0))
		refuse(reader, node, xstrdup("a value is missing"));
	return reader->wrong ? NULL : text;
}

/* NODE and all below it as JSON.  After an error the result is incomplete or NULL. */
static json_t *json_of(struct reader *reader, const yaml_node_t *node)
{
	json_t *json;

	if (node->type == YAML_SCALAR_NODE)
		return json_string(text_of(reader, node));
	if (node->type == YAML_SEQUENCE_NODE) {
		json = json_array();
		for (yaml_node_item_t *item = node->data.sequence.items.start;
		     item < node->data.sequence.items.top && !reader->wrong; item++)
			json_array_append_new(json, json_of(reader, visit(reader, *item)));
		return json;
	}
	json = json_object();
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top && !reader->wrong; pair++) {
		const yaml_node_t *key = visit(reader, pair->key);
		const char *name = text_of(reader, key);

		if (name && json_object_get(json, name))
			refuse(reader, key, xstrdup("the rule has this key twice"));
		else if (name)
			json_object_set_new(json, name,
					    json_of(reader, visit(reader, pair->value)));
	}
	return json;
}

static void take_value(struct reader *reader, const struct option *option, const yaml_node_t *node)
{
	char *place = xasprintf("%s:%zu", reader->path, node->start_mark.line + 1), *rule = NULL;
	const char *value;
	json_t *json;

	if (option->flags & OPTION_RULES && node->type != YAML_MAPPING_NODE) {
		refuse(reader, node, xasprintf("'%s' must be a list of rules", option->name));
	} else if (option->flags & OPTION_RULES) {
		json = json_of(reader, node);
		rule = json_dumps(json, 0);
		json_decref(json);
	}
	value = rule || reader->wrong ? rule : text_of(reader, node);
	if (!reader->wrong)
		refuse(reader, node,
		       settings__try(reader->settings, option, ORIGIN_FILE, value, place));
	free(rule);
	free(place);
}

static void take_entry(struct reader *reader, const yaml_node_t *key, const yaml_node_t *value)
{
	const char *name = text_of(reader, key);
	const struct option *option = name ? option_table__find(reader->verb, name) : NULL;

	if (!option || option->flags & OPTION_LOCAL) {
		refuse(reader, key, xasprintf("unknown key '%s'", name ?: ""));
	} else if (value->type != YAML_SEQUENCE_NODE) {
		take_value(reader, option, value);
	} else if (!(option->flags & (OPTION_LIST | OPTION_RULES))) {
		refuse(reader, value, xasprintf("'%s' has one value, not a list", name));
	} else {
		for (yaml_node_item_t *item = value->data.sequence.items.start;
		     item < value->data.sequence.items.top && !reader->wrong; item++)
			take_value(reader, option, visit(reader, *item));
	}
}

static void take_document(struct reader *reader)
{
	yaml_node_t *root = yaml_document_get_root_node(&reader->document), *key, *before;
	yaml_node_pair_t *first = root->data.mapping.pairs.start;

	reader->visits = 1;
	if (root->type != YAML_MAPPING_NODE) {
		refuse(reader, root,
		       xstrdup("the file must be a list of lines such as `rate: 19`"));
		return;
	}
	for (yaml_node_pair_t *pair = first; pair < root->data.mapping.pairs.top && !reader->wrong;
	     pair++) {
		key = visit(reader, pair->key);
		take_entry(reader, key, visit(reader, pair->value));
		for (yaml_node_pair_t *other = first; other < pair && !reader->wrong; other++) {
			before = yaml_document_get_node(&reader->document, other->key);
			if (strcmp(text_of(reader, key), text_of(reader, before)) == 0)
				refuse(reader, key,
				       xasprintf("'%s' is already set at %s:%zu",
						 text_of(reader, key), reader->path,
						 before->start_mark.line + 1));
		}
	}
}

/* Loads the next document.  Returns false at the end, or after noting an error. */
static bool load(struct reader *reader, yaml_parser_t *parser)
{
	if (yaml_parser_load(parser, &reader->document)) {
		if (yaml_document_get_root_node(&reader->document))
			return true;
		yaml_document_delete(&reader->document);
		return false;
	}
	/* libyaml gives a problem for every error but this one. */
	if (!parser->problem)
		out_of_memory();
	if (parser->error == YAML_READER_ERROR)
		reader->wrong = xasprintf("%s: not UTF-8 text: %s, at byte %zu", reader->path,
					  parser->problem, parser->problem_offset);
	else
		reader->wrong = xasprintf("%s:%zu: %s", reader->path, parser->problem_mark.line + 1,
					  parser->problem);
	return false;
}

static void read_stream(struct reader *reader, FILE *file)
{
	yaml_parser_t parser;

	if (!yaml_parser_initialize(&parser))
		out_of_memory();
	yaml_parser_set_input_file(&parser, file);
	if (load(reader, &parser)) {
		take_document(reader);
		yaml_document_delete(&reader->document);
		if (!reader->wrong && load(reader, &parser)) {
			refuse(reader, yaml_document_get_root_node(&reader->document),
			       xstrdup("the file has more than one YAML document"));
			yaml_document_delete(&reader->document);
		}
	}
	yaml_parser_delete(&parser);
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

static void print_quoted(const char *value, FILE *file)
{
	char *text = xmalloc(2 * strlen(value) + 1), *to = text;
	char *valid = unicode__sanitize(value, strlen(value)), *escaped;

	for (const char *at = value; *at; at++) {
		if (*at == '"' || *at == '\\')
			*to++ = '\\';
		*to++ = *at;
	}
	*to = '\0';
	/* The escapes of plain_text.c, \xNN and \uNNNN, are also YAML's, which must be UTF-8. */
	escaped = strcmp(valid, value) == 0 ? plain_text__escape(text, SIZE_MAX) : xstrdup(text);
	fprintf(file, "\"%s\"", escaped);
	free(escaped);
	free(valid);
	free(text);
}

/* Not json_dumps(): YAML has no surrogate pairs, and wants more characters escaped than JSON. */
static void print_json(json_t *value, FILE *file)
{
	const char *key, *separator = "";
	json_t *part;
	size_t i;

	if (json_is_string(value)) {
		print_quoted(json_string_value(value), file);
		return;
	}
	fputc(json_is_array(value) ? '[' : '{', file);
	json_array_foreach(value, i, part)
	{
		fputs(i ? ", " : "", file);
		print_json(part, file);
	}
	json_object_foreach(value, key, part)
	{
		fputs(separator, file);
		print_quoted(key, file);
		fputs(": ", file);
		print_json(part, file);
		separator = ", ";
	}
	fputc(json_is_array(value) ? ']' : '}', file);
}

void config_file__print(const struct option *option, const char *value, FILE *file)
{
	json_t *rule = option->flags & OPTION_RULES ? json_loads(value, 0, NULL) : NULL;

	if (rule)
		print_json(rule, file);
	else if (*value && !value[strspn(value, PLAIN)] && *value != '-' &&
		 strcmp(value, NULL_VALUE) != 0)
		fputs(value, file);
	else
		print_quoted(value, file);
	json_decref(rule);
}
