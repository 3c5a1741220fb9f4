// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each container that starts has its own files, as the kernel sees it, so their number grows
 * without end.  The newest are kept here; BPF keeps those that it met last.  If one side lacks a
 * file that the other has, BPF asks about it again.
 *
 * A number belongs to one file forever.  A file is kept at its number modulo IMAGES_MAX.
 */
#include <stdlib.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "reading/process.h"
#include "watch/images.h"

/* A file may be rewritten without notice, so what holds no Python is forgotten after this time. */
#define FORGET_NS (10 * 1000000000LL)
#define PARTS_MAX 4096

struct image {
	struct file_key key;
	uint32_t number;	/* 0: none */
	struct runtime runtime; /* at the addresses of the file */
	UT_hash_handle hh;
};

/* A set of parts of files. */
struct known_part {
	struct file_part key;
	UT_hash_handle hh;
};

struct images {
	struct target_map *map;
	struct image **kept; /* IMAGES_MAX; NULL: none yet */
	struct image *by_key;
	uint32_t last_number;
	struct known_part *python, *plain;
	int64_t plain_since_ns;
};

struct images *images__new(struct target_map *map)
{
	struct images *images = xcalloc(1, sizeof(*images));

	images->map = map;
	images->kept = xcalloc(IMAGES_MAX, sizeof(*images->kept));
	return images;
}

static void clear_parts(struct known_part **parts)
{
	struct known_part *part, *next;

	HASH_ITER (hh, *parts, part, next) {
		HASH_DEL(*parts, part);
		free(part);
	}
}

void images__free(struct images *images)
{
	if (!images)
		return;
	HASH_CLEAR(hh, images->by_key);
	for (size_t i = 0; i < IMAGES_MAX; i++)
		free(images->kept[i]);
	free(images->kept);
	clear_parts(&images->python);
	clear_parts(&images->plain);
	free(images);
}

/* Adds one for KEY, in place of the oldest. */
static struct image *add(struct images *images, const struct file_key *key)
{
	uint32_t number = ++images->last_number ? images->last_number : ++images->last_number;
	struct image **place = &images->kept[number % IMAGES_MAX];

	if (*place)
		HASH_DEL(images->by_key, *place);
	free(*place);
	*place = xcalloc(1, sizeof(**place));
	(*place)->key = *key;
	(*place)->number = number;
	HASH_ADD(hh, images->by_key, key, sizeof((*place)->key), *place);
	return *place;
}

void images__learn(struct images *images, const struct file_key *key, uint64_t start, bool began,
		   const struct runtime *runtime)
{
	struct text_place text;
	struct image *image;

	if (!runtime || runtime->text.start != start) {
		/* If the Python's file is not known, BPF asks about each file again. */
		if (!runtime || runtime->text.start)
			target_map__know_other(images->map, key, began && runtime);
		return;
	}
	HASH_FIND(hh, images->by_key, key, sizeof(*key), image);
	if (!image)
		image = add(images, key);
	image->runtime = *runtime;
	runtime__move(&image->runtime, -runtime->text.bias);
	text = (struct text_place){ image->runtime.text.offset, image->runtime.text.start };
	target_map__know_python(images->map, key, text, image->number, &image->runtime);
}

bool images__runtime(const struct images *images, uint32_t number, uint64_t bias,
		     struct runtime *runtime)
{
	const struct image *image = images->kept[number % IMAGES_MAX];

	if (!number || !image || image->number != number)
		return false;
	*runtime = image->runtime;
	runtime__move(runtime, bias);
	return true;
}

static bool has_part(const struct known_part *parts, const struct file_part *part)
{
	struct known_part *known;

	HASH_FIND(hh, parts, part, sizeof(*part), known);
	return known;
}

static void add_part(struct known_part **parts, const struct file_part *part)
{
	struct known_part *known;

	if (has_part(*parts, part))
		return;
	if (HASH_COUNT(*parts) >= PARTS_MAX)
		clear_parts(parts);
	known = xcalloc(1, sizeof(*known));
	known->key = *part;
	HASH_ADD(hh, *parts, key, sizeof(known->key), known);
}

/* Adds those that process PID still has.  One that it has unmapped may have held a Python. */
static void add_plain(struct images *images, pid_t pid, const struct mapped_file *mapped,
		      size_t count)
{
	struct mapping *mappings = NULL;
	ssize_t mapping_count = 0;
	bool cut;

	if (count)
		mapping_count =
			process__program_mappings(pid, process__reader(pid), &mappings, &cut);
	for (size_t i = 0; i < count; i++) {
		ssize_t at = 0;

		while (at < mapping_count && (mapped[i].start < mappings[at].start ||
					      mapped[i].start >= mappings[at].end))
			at++;
		if (at < mapping_count)
			add_part(&images->plain, &mapped[i].part);
	}
	free(mappings);
}

void images__learn_mapped(struct images *images, pid_t pid, const struct mapped_file *mapped,
			  size_t count, const struct runtime *runtime)
{
	if (!runtime)
		add_plain(images, pid, mapped, count);
	for (size_t i = 0; runtime && i < count; i++)
		if (mapped[i].start == runtime->text.start)
			add_part(&images->python, &mapped[i].part);
}

bool images__is_python(const struct images *images, const struct file_part *part)
{
	return has_part(images->python, part);
}

bool images__is_plain(struct images *images, const struct file_part *part, int64_t now)
{
	if (now - images->plain_since_ns > FORGET_NS) {
		clear_parts(&images->plain);
		images->plain_since_ns = now;
	}
	return has_part(images->plain, part);
}
