// SPDX-License-Identifier: BSD-2-Clause
/*
 * pprof: a gzipped protobuf.
 *
 * A protobuf message may be written in parts, one after another: a reader merges their fields.  So
 * the profile is packed one sample, location, function or string at a time, and is never in memory
 * as a whole.
 *
 * In a difference, samples of the profile before are negative, and have the label by which `go tool
 * pprof` recognizes the base, as with its own -diff_base.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "base/xalloc.h"
#include "output/output.h"
#include "pprof.pb-c.h"
#include "profile/plain_text.h"
#include "profile/profile_events.h"

/* Pyroscope turns label values into series, and refuses values of more than 2,048 bytes. */
#define VALUE_BYTES_MAX 1024

/* Of a sample, without a service's own labels. */
#define LABELS_MAX 10

#define COMPRESSED_BYTES (16 * 1024)

/* The labels of a sample. */
struct labels {
	Pprof__Label *labels, **list;
	size_t count;
};

struct writer {
	const struct profile *profile;
	struct labels labels;
	FILE *file;
	z_stream stream;
	uint8_t *packed, *compressed;
	size_t packed_capacity;
	int64_t *string_indices; /* of the profile's strings; 0: not written yet, except for "" */
	int64_t *value_indices;	 /* the same for label values, which may be shortened */
	int64_t string_count;
	struct {
		int64_t pid, tid, thread, process, command, container_id, cgroup, pod_uid, user;
	} keys;
	int64_t base, is_base; /* key and value of the label of a base sample */
};

static void compress_bytes(struct writer *writer, uint8_t *bytes, size_t length, int flush)
{
	writer->stream.next_in = bytes;
	writer->stream.avail_in = length;
	do {
		writer->stream.next_out = writer->compressed;
		writer->stream.avail_out = COMPRESSED_BYTES;
		deflate(&writer->stream, flush);
		fwrite(writer->compressed, 1, COMPRESSED_BYTES - writer->stream.avail_out,
		       writer->file);
	} while (!writer->stream.avail_out);
}

static void put(struct writer *writer, const Pprof__Profile *part)
{
	size_t length = pprof__profile__get_packed_size(part);

	writer->packed = xgrow(writer->packed, &writer->packed_capacity, length, 1);
	pprof__profile__pack(part, writer->packed);
	compress_bytes(writer, writer->packed, length, Z_NO_FLUSH);
}

/* Puts ELEMENT into the profile's list LIST. */
#define PUT_ONE(writer, list, element)                                                       \
	put(writer,                                                                          \
	    &(Pprof__Profile){ .base = PROTOBUF_C_MESSAGE_INIT(&pprof__profile__descriptor), \
			       .n_##list = 1,                                                \
			       .list = (typeof(*((Pprof__Profile *)0)->list)[]){ element } })

/* Escaped, because readers print strings as they are. */
static int64_t put_text(struct writer *writer, const char *text)
{
	char *plain = plain_text__escape(text, SIZE_MAX);

	PUT_ONE(writer, string_table, plain);
	free(plain);
	return writer->string_count++;
}

static int64_t put_string(struct writer *writer, string_id string)
{
	if (string && !writer->string_indices[string])
		writer->string_indices[string] = put_text(writer, writer->profile->strings[string]);
	return writer->string_indices[string];
}

static void put_comment(struct writer *writer, const char *text)
{
	PUT_ONE(writer, comment, put_text(writer, text));
}

static void put_comments(struct writer *writer, const struct output_options *options)
{
	char *summary = ledger__summary(writer->profile->ledgers), *rest = summary, *line;

	put_comment(writer, "pybpfprof " PYBPFPROF_VERSION);
	put_comment(writer, options->title);
	while ((line = strsep(&rest, "\n")))
		put_comment(writer, line);
	free(summary);
}

/* The two values of a sample of EVENT: the number of samples, and what they stand for. */
static void name_values(struct writer *writer, const struct profile_event *event,
			Pprof__ValueType values[2])
{
	char *type = profile_events__type(event), *samples = xasprintf("%s_samples", type);

	values[0] = values[1] = (Pprof__ValueType)PPROF__VALUE_TYPE__INIT;
	values[0].type = put_text(writer, event->period ? samples : "samples");
	values[0].unit = put_text(writer, "count");
	values[1].type = put_text(writer, type);
	values[1].unit = put_text(writer, event->unit);
	free(samples);
	free(type);
}

static void put_header(struct writer *writer)
{
	const struct profile *profile = writer->profile;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__ValueType values[2 * EVENTS_MAX] = { PPROF__VALUE_TYPE__INIT };
	Pprof__ValueType *types[2 * EVENTS_MAX];

	put_text(writer, "");
	for (uint32_t i = 0; i < profile->event_count; i++)
		name_values(writer, &profile->events[i], &values[2 * i]);
	for (uint32_t i = 0; i < 2 * profile->event_count; i++)
		types[i] = &values[i];
	writer->keys.pid = put_text(writer, "pid");
	writer->keys.tid = put_text(writer, "tid");
	writer->keys.thread = put_text(writer, "thread");
	writer->keys.process = put_text(writer, "process");
	writer->keys.command = put_text(writer, "command");
	writer->keys.container_id = put_text(writer, "container_id");
	writer->keys.cgroup = put_text(writer, "cgroup");
	writer->keys.pod_uid = put_text(writer, "pod_uid");
	writer->keys.user = put_text(writer, "user");
	part.n_sample_type = 2 * profile->event_count;
	part.sample_type = types;
	part.default_sample_type = values[1].type;
	part.period_type = &values[1];
	part.period = profile__period(profile, 0);
	part.time_nanos = profile->start_unix_ns;
	part.duration_nanos = profile->duration_ns;
	put(writer, &part);
}

static void put_function(struct writer *writer, uint32_t index)
{
	const struct profile_function *function = &writer->profile->functions[index];
	Pprof__Function message = PPROF__FUNCTION__INIT;

	message.id = index + 1;
	/* No system_name: pprof would take the same name for a C++ symbol, and cut "<module>" and
	 * other parts that look like template parameters. */
	message.name = put_string(writer, function->name);
	message.filename = put_string(writer, function->filename);
	message.start_line = function->first_line;
	PUT_ONE(writer, function, &message);
}

/* A mapping of the interpreter's file; 0: there is none. */
static uint32_t interpreter_mapping(const struct profile *profile)
{
	for (size_t i = 0; i < profile->location_count; i++) {
		const struct profile_location *location = &profile->locations[i];

		if (location->mapping && profile->functions[location->function].of_interpreter)
			return location->mapping;
	}
	return 0;
}

/* The symbols are resolved already (has_functions), as far as possible. */
static void put_mapping(struct writer *writer, uint32_t index)
{
	const struct profile_mapping *mapping = &writer->profile->mappings[index];
	Pprof__Mapping message = PPROF__MAPPING__INIT;

	message.id = index;
	message.memory_start = mapping->start;
	message.memory_limit = mapping->limit;
	message.file_offset = mapping->offset;
	message.filename = put_string(writer, mapping->file);
	message.build_id = put_string(writer, mapping->build_id);
	message.has_functions = true;
	PUT_ONE(writer, mapping, &message);
}

/* The interpreter's mapping comes first, which readers take for the program's. */
static void put_mappings(struct writer *writer)
{
	uint32_t first = interpreter_mapping(writer->profile);

	if (first)
		put_mapping(writer, first);
	for (size_t i = 1; i < writer->profile->mapping_count; i++)
		if (i != first)
			put_mapping(writer, i);
}

static void put_location(struct writer *writer, uint32_t index)
{
	const struct profile_location *location = &writer->profile->locations[index];
	Pprof__Location message = PPROF__LOCATION__INIT;
	Pprof__Line line = PPROF__LINE__INIT, *lines[] = { &line };

	line.function_id = location->function + 1;
	line.line = location->line;
	message.id = index + 1;
	message.mapping_id = location->mapping;
	message.address = location->address;
	message.n_line = 1;
	message.line = lines;
	PUT_ONE(writer, location, &message);
}

/* The index of STRING as a label value. */
static int64_t put_value(struct writer *writer, string_id string)
{
	const char *text = writer->profile->strings[string];
	int64_t *index = &writer->value_indices[string], known = *index;
	char *plain;

	if (known)
		return known;
	plain = plain_text__escape(text, SIZE_MAX);
	if (strlen(plain) <= VALUE_BYTES_MAX)
		*index = put_string(writer, string);
	else
		*index = put_text(writer, output__shorten(plain, VALUE_BYTES_MAX));
	free(plain);
	return *index;
}

static void add_label(struct writer *writer, int64_t key, int64_t string, int64_t number)
{
	struct labels *labels = &writer->labels;
	Pprof__Label *label = &labels->labels[labels->count];

	pprof__label__init(label);
	label->key = key;
	label->str = string;
	label->num = number;
	labels->list[labels->count++] = label;
}

static void add_value(struct writer *writer, int64_t key, string_id string)
{
	if (string)
		add_label(writer, key, put_value(writer, string), 0);
}

/* Allocates room for the labels of any sample. */
static void make_labels(struct writer *writer)
{
	const struct profile *profile = writer->profile;
	size_t most = 0;

	for (size_t i = 0; i < profile->process_count; i++)
		if (profile->processes[i].label_count > most)
			most = profile->processes[i].label_count;
	most += LABELS_MAX;
	writer->labels.labels = xcalloc(most, sizeof(*writer->labels.labels));
	writer->labels.list = xcalloc(most, sizeof(*writer->labels.list));
}

/* The labels of a service are all that is known of it. */
static void add_service(struct writer *writer, const struct profile_process *process)
{
	for (uint32_t i = 0; i < process->label_count; i++) {
		const struct profile_label *label =
			&writer->profile->labels[process->first_label + i];

		/* The pid is there already, as a number. */
		if (!process->pid || strcmp(writer->profile->strings[label->name], "pid") != 0)
			add_value(writer, put_value(writer, label->name), label->value);
	}
}

static void init_labels(struct writer *writer, const struct profile_thread *thread)
{
	const struct profile_process *process = &writer->profile->processes[thread->process];

	writer->labels.count = 0;
	if (process->pid)
		add_label(writer, writer->keys.pid, 0, process->pid);
	if (thread->tid)
		add_label(writer, writer->keys.tid, 0, thread->tid);
	add_value(writer, writer->keys.thread, thread->name);
	if (process->label_count) {
		add_service(writer, process);
		return;
	}
	add_value(writer, writer->keys.process, process->short_name);
	add_value(writer, writer->keys.command, process->command);
	add_value(writer, writer->keys.container_id, process->container_id);
	add_value(writer, writer->keys.cgroup, process->cgroup);
	add_value(writer, writer->keys.pod_uid, process->pod_uid);
	add_value(writer, writer->keys.user, process->user);
}

/* Writes COUNT samples worth VALUE; both are negative for the base. */
static void put_sample(struct writer *writer, const struct profile_sample *sample, int64_t count,
		       int64_t value)
{
	const struct profile *profile = writer->profile;
	const struct profile_stack *stack = &profile->stacks[sample->stack];
	Pprof__Sample message = PPROF__SAMPLE__INIT;
	int64_t values[2 * EVENTS_MAX] = { 0 };

	values[2 * sample->event] = count;
	values[2 * sample->event + 1] = value;
	init_labels(writer, &profile->threads[sample->thread]);
	if (value < 0)
		add_label(writer, writer->base, writer->is_base, 0);
	message.label = writer->labels.list;
	message.n_label = writer->labels.count;
	message.n_value = 2 * profile->event_count;
	message.value = values;
	message.n_location_id = stack->depth;
	message.location_id = xcalloc(stack->depth, sizeof(*message.location_id));
	for (uint32_t i = 0; i < stack->depth; i++)
		message.location_id[i] = stack->locations[i] + 1;
	PUT_ONE(writer, sample, &message);
	free(message.location_id);
}

static void put_before(struct writer *writer, const struct profile *before)
{
	double scale = output__scale(before, writer->profile);

	writer->base = put_text(writer, "pprof::base");
	writer->is_base = put_text(writer, "true");
	for (size_t i = 0; i < before->sample_count; i++) {
		uint64_t weight = profile__weight(before, &before->samples[i]);
		int64_t count = llround(weight * scale);

		if (count)
			put_sample(writer, &before->samples[i], -count,
				   -count * (int64_t)profile__period(writer->profile, 0));
	}
}

static int write_pprof(const struct profile *profile, const struct output_options *options,
		       FILE *file)
{
	struct writer writer = { .profile = profile, .file = file };

	if (deflateInit2(&writer.stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	writer.string_indices = xcalloc(profile->string_count, sizeof(*writer.string_indices));
	writer.value_indices = xcalloc(profile->string_count, sizeof(*writer.value_indices));
	writer.compressed = xmalloc(COMPRESSED_BYTES);
	make_labels(&writer);
	put_header(&writer);
	if (options->title)
		put_comments(&writer, options);
	for (size_t i = 0; i < profile->function_count; i++)
		put_function(&writer, i);
	put_mappings(&writer);
	for (size_t i = 0; i < profile->location_count; i++)
		put_location(&writer, i);
	for (size_t i = 0; i < profile->sample_count; i++)
		put_sample(&writer, &profile->samples[i], profile->samples[i].amount.count,
			   profile->samples[i].amount.value);
	if (options->before)
		put_before(&writer, options->before);
	compress_bytes(&writer, NULL, 0, Z_FINISH);
	deflateEnd(&writer.stream);
	free(writer.string_indices);
	free(writer.value_indices);
	free(writer.labels.labels);
	free(writer.labels.list);
	free(writer.packed);
	free(writer.compressed);
	return 0;
}

const struct output_format output_pprof = {
	.name = "pprof",
	.description = "gzipped protobuf for `go tool pprof` and profile databases",
	.use = "see it with `go tool pprof FILE`",
	.suffix = "pb.gz",
	.endings = { ".pb.gz", ".pprof" },
	.tells_threads = true,
	.holds_events = true,
	.tells_difference = true,
	.write = write_pprof,
};
