// SPDX-License-Identifier: BSD-2-Clause
/*
 * Folded stacks: one line for each stack, root first, with its count.  For a difference two counts,
 * as difffolded.pl writes them: before, and now.
 *
 * Lines are not built as text before they are printed.  Each label has a rank among all labels, a
 * line is a sequence of ranks, and lines are sorted and merged by these.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "output/output.h"

/* No real program fills that: 1,000 bytes for each of the most frames.  But a target may make names
 * that would fill a disk. */
#define LINE_BYTES_MAX (1024 * 1024)
#define COUNT_BYTES    48

_Static_assert(3 * LABEL_BYTES_MAX + 64 + COUNT_BYTES < LINE_BYTES_MAX,
	       "a process, a thread and a leaf always fit");

/* Pyroscope silently drops the rest of a file from the first line of this length on. */
#define LONG_LINE_BYTES (64 * 1024)

/* Replaces the callers of a stack that is too long for a line. */
static const char marker[] = "[callers cut]";

/* Labels are numbered: locations, threads, processes, the marker. */
struct labels {
	uint32_t *ranks;    /* by number; equal labels have the same rank */
	const char **texts; /* by rank */
	char **owned;	    /* by number */
	uint32_t first_thread, first_process, marker, count;
};

struct line {
	uint32_t root[3]; /* ranks before the frames */
	uint32_t root_length;
	uint32_t depth; /* number of frames, counted from the leaf */
	const uint32_t *locations;
	uint64_t count, before;
};

static int compare_texts(const void *left, const void *right, void *texts)
{
	char *const *owned = texts;

	return strcmp(owned[*(const uint32_t *)left], owned[*(const uint32_t *)right]);
}

static void labels__rank(struct labels *labels)
{
	uint32_t *order = xcalloc(labels->count, sizeof(*order));
	uint32_t rank = 0;

	for (uint32_t i = 0; i < labels->count; i++)
		order[i] = i;
	qsort_r(order, labels->count, sizeof(*order), compare_texts, labels->owned);
	for (uint32_t i = 0; i < labels->count; i++) {
		const char *text = labels->owned[order[i]];

		if (i && strcmp(text, labels->texts[rank]))
			rank++;
		labels->texts[rank] = text;
		labels->ranks[order[i]] = rank;
	}
	free(order);
}

static void labels__init(struct labels *labels, const struct profile *profile,
			 const struct output_options *options)
{
	uint32_t number = 0;

	labels->first_thread = profile->location_count;
	labels->first_process = labels->first_thread + profile->thread_count;
	labels->marker = labels->first_process + profile->process_count;
	labels->count = labels->marker + 1;
	labels->ranks = xcalloc(labels->count, sizeof(*labels->ranks));
	labels->texts = xcalloc(labels->count, sizeof(*labels->texts));
	labels->owned = xcalloc(labels->count, sizeof(*labels->owned));
	for (uint32_t i = 0; i < profile->location_count; i++)
		labels->owned[number++] = output__frame_label(profile, options, i);
	for (uint32_t i = 0; i < profile->thread_count; i++)
		labels->owned[number++] = output__thread_label(profile, i);
	for (uint32_t i = 0; i < profile->process_count; i++)
		labels->owned[number++] = output__process_label(profile, i);
	labels->owned[number] = xstrdup(marker);
	labels__rank(labels);
}

static void labels__free(struct labels *labels)
{
	for (uint32_t i = 0; i < labels->count; i++)
		free(labels->owned[i]);
	free(labels->owned);
	free(labels->texts);
	free(labels->ranks);
}

static uint32_t line__length(const struct line *line)
{
	return line->root_length + line->depth;
}

/* The rank of label INDEX of a line, root first. */
static uint32_t line__rank(const struct line *line, const struct labels *labels, uint32_t index)
{
	if (index < line->root_length)
		return line->root[index];
	return labels->ranks[line->locations[line->depth - 1 - (index - line->root_length)]];
}

static int compare_lines(const void *left, const void *right, void *labels)
{
	const struct line *a = left, *b = right;
	uint32_t a_length = line__length(a), b_length = line__length(b);

	for (uint32_t i = 0; i < a_length && i < b_length; i++) {
		uint32_t a_rank = line__rank(a, labels, i), b_rank = line__rank(b, labels, i);

		if (a_rank != b_rank)
			return a_rank < b_rank ? -1 : 1;
	}
	return (a_length > b_length) - (a_length < b_length);
}

/* Cuts callers that do not fit: the leaf is the code that ran. */
static void line__cut(struct line *line, const struct labels *labels)
{
	size_t length = sizeof(marker) + COUNT_BYTES;
	uint32_t depth = 0;

	for (uint32_t i = 0; i < line->root_length; i++)
		length += strlen(labels->texts[line->root[i]]) + 1;
	for (; depth < line->depth; depth++) {
		length += strlen(labels->texts[labels->ranks[line->locations[depth]]]) + 1;
		if (length > LINE_BYTES_MAX)
			break;
	}
	if (depth == line->depth)
		return;
	line->depth = depth;
	line->root[line->root_length++] = labels->ranks[labels->marker];
}

static void line__init(struct line *line, const struct profile *profile,
		       const struct output_options *options, const struct labels *labels,
		       const struct profile_sample *sample)
{
	const struct profile_stack *stack = &profile->stacks[sample->stack];
	uint32_t process = profile->threads[sample->thread].process;

	line->locations = stack->locations;
	line->depth = stack->depth;
	if (output__shows_processes(profile, options))
		line->root[line->root_length++] = labels->ranks[labels->first_process + process];
	if (options->threads)
		line->root[line->root_length++] =
			labels->ranks[labels->first_thread + sample->thread];
	line__cut(line, labels);
}

/* Returns the bytes of the stack. */
static size_t line__print(const struct line *line, const struct labels *labels, bool differs,
			  FILE *file)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < line__length(line); i++) {
		const char *text = labels->texts[line__rank(line, labels, i)];

		if (i)
			fputc(';', file);
		fputs(text, file);
		bytes += strlen(text) + 1;
	}
	if (differs)
		fprintf(file, " %llu", (unsigned long long)line->before);
	fprintf(file, " %llu\n", (unsigned long long)line->count);
	return bytes;
}

/* A line for each sample, of both profiles for a difference; the caller frees them. */
static struct line *make_lines(const struct profile *profile, const struct output_options *options,
			       const struct labels *labels, size_t *count)
{
	const struct profile *before = options->before;
	size_t before_count = before ? before->sample_count : 0;
	double scale = before ? output__scale(before, profile) : 0;
	struct line *lines = xcalloc(profile->sample_count + before_count + 1, sizeof(*lines)), *at;

	at = lines;
	for (size_t i = 0; i < profile->sample_count; i++) {
		at->count = profile__weight(profile, &profile->samples[i]);
		/* A wait that is too short to be shown. */
		if (at->count)
			line__init(at++, profile, options, labels, &profile->samples[i]);
	}
	for (size_t i = 0; i < before_count; i++, at++) {
		line__init(at, profile, options, labels, &before->samples[i]);
		at->before =
			(uint64_t)llround(profile__weight(before, &before->samples[i]) * scale);
	}
	*count = (size_t)(at - lines);
	return lines;
}

static int write_folded(const struct profile *profile, const struct output_options *options,
			FILE *file)
{
	struct labels labels;
	struct line *lines;
	size_t count, longest = 0;

	labels__init(&labels, profile, options);
	lines = make_lines(profile, options, &labels, &count);
	qsort_r(lines, count, sizeof(*lines), compare_lines, &labels);
	for (size_t i = 0; i < count; i++) {
		if (i + 1 == count || compare_lines(&lines[i], &lines[i + 1], &labels)) {
			size_t bytes = line__print(&lines[i], &labels, options->before, file);

			longest = bytes > longest ? bytes : longest;
			continue;
		}
		lines[i + 1].count += lines[i].count;
		lines[i + 1].before += lines[i].before;
	}
	if (longest + COUNT_BYTES > LONG_LINE_BYTES)
		log__warning("a folded stack takes %zu bytes: Pyroscope reads the file only up to "
			     "there; use -f pprof, which has no such limit",
			     longest);
	free(lines);
	labels__free(&labels);
	return 0;
}

const struct output_format output_folded = {
	.name = "folded",
	.description = "one line per stack with its count, for flame graph tools",
	.suffix = "folded",
	.endings = { ".folded", ".collapsed", ".txt" },
	.tells_difference = true,
	.write = write_folded,
};
