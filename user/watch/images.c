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
#include "base/now.h"
#include "base/xalloc.h"
#include "reading/process.h"
#include "watch/images.h"

/* A file may be rewritten without notice, so what holds no Python is forgotten after this time. */
#define FORGET_NS (10 * 1000000000LL)
#define PARTS_MAX 4096

struct image {
	uint32_t number;
	struct runtime runtime; /* at the addresses of the file */
};

/* What is known of a part of a file. */
struct known_part {
	struct file_part key;
	bool is_python;
	int64_t since_ns;
	UT_hash_handle hh;
};

struct images {
	struct target_map *map;
	struct image **kept; /* IMAGES_MAX; NULL: none yet */
	uint32_t last_number;
	struct known_part *parts; /* the oldest first */
};

struct images *images__new(struct target_map *map)
{
	struct images *images = xcalloc(1, sizeof(*images));

	images->map = map;
	images->kept = xcalloc(IMAGES_MAX, sizeof(*images->kept));
	return images;
}

void images__free(struct images *images)
{
	if (!images)
		return;
	HASH_EMPTY(images->parts, free);
	for (size_t i = 0; i < IMAGES_MAX; i++)
		free(images->kept[i]);
	free(images->kept);
	free(images);
}

/* Adds RUNTIME in place of the oldest. */
static struct image *add(struct images *images, const struct runtime *runtime)
{
	uint32_t number = ++images->last_number ? images->last_number : ++images->last_number;
	struct image **place = &images->kept[number % IMAGES_MAX];

	if (!*place)
		*place = xmalloc(sizeof(**place));
	**place = (struct image){ number, *runtime };
	runtime__move(&(*place)->runtime, -runtime->text.bias);
	return *place;
}

void images__learn(struct images *images, const struct file_key *key, uint64_t start, bool began,
		   const struct runtime *runtime)
{
	const struct image *image;
	struct text_place text;

	if (!runtime || runtime->text.start != start) {
		/* If the Python's file is not known, BPF asks about each file again. */
		if (!runtime || runtime->text.start)
			target_map__know_other(images->map, key, began && runtime);
		return;
	}
	image = add(images, runtime);
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

static struct known_part *find_part(const struct images *images, const struct file_part *part)
{
	return HASH_GET(hh, images->parts, part);
}

/* Makes PART the newest, in place of the oldest if there are too many. */
static void learn_part(struct images *images, const struct file_part *part, bool is_python)
{
	struct known_part *known = find_part(images, part);

	is_python |= known && known->is_python;
	if (!known && HASH_COUNT(images->parts) >= PARTS_MAX)
		known = images->parts;
	if (known)
		HASH_DEL(images->parts, known);
	else
		known = xmalloc(sizeof(*known));
	*known = (struct known_part){ *part, is_python, now_ns(), { 0 } };
	HASH_ADD(hh, images->parts, key, sizeof(known->key), known);
}

/* Learns those that process PID still has.  One that it has unmapped may have held a Python. */
static void learn_plain(struct images *images, pid_t pid, const struct mapped_file *mapped,
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
			learn_part(images, &mapped[i].part, false);
	}
	free(mappings);
}

void images__learn_mapped(struct images *images, pid_t pid, const struct mapped_file *mapped,
			  size_t count, const struct runtime *runtime)
{
	if (!runtime)
		learn_plain(images, pid, mapped, count);
	for (size_t i = 0; runtime && i < count; i++)
		if (mapped[i].start == runtime->text.start)
			learn_part(images, &mapped[i].part, true);
}

bool images__is_python(const struct images *images, const struct file_part *part)
{
	const struct known_part *known = find_part(images, part);

	return known && known->is_python;
}

bool images__is_plain(const struct images *images, const struct file_part *part, int64_t now)
{
	const struct known_part *known = find_part(images, part);

	return known && !known->is_python && now - known->since_ns <= FORGET_NS;
}
