// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each container that starts has files of its own, for the kernel, so that there are ever more of
 * them.  The newest are kept; the kernel side has those that it met last.  Where it has one that is
 * not here any more, or the other way round, the file is asked about, and learned, again.
 *
 * A number is of one file for ever: what is kept stands at its number modulo how many are kept.
 */
#include <stdlib.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "watch/images.h"

struct image {
	struct file_key key;
	uint32_t number;	/* 0: none */
	struct runtime runtime; /* with the addresses of the file */
	UT_hash_handle hh;
};

struct images {
	struct target_map *map;
	struct image **kept; /* IMAGES_MAX, NULL: none yet */
	struct image *by_key;
	uint32_t last_number;
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
	HASH_CLEAR(hh, images->by_key);
	for (size_t i = 0; i < IMAGES_MAX; i++)
		free(images->kept[i]);
	free(images->kept);
	free(images);
}

/* A new one for KEY, in place of the oldest. */
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
		/* Where it is not known in which file it is, each is asked about again. */
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
