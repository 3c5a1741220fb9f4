// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "images.h"
#include "xalloc.h"

struct images {
	struct target_map *map;
	struct runtime *runtimes; /* with the addresses of their files; number N is at N - 1 */
	size_t count, capacity;
};

struct images *images__new(struct target_map *map)
{
	struct images *images = xcalloc(1, sizeof(*images));

	images->map = map;
	return images;
}

void images__free(struct images *images)
{
	if (!images)
		return;
	free(images->runtimes);
	free(images);
}

void images__learn(struct images *images, const struct file_key *key, uint64_t start, bool began,
		   const struct runtime *runtime)
{
	struct text_place text;
	struct runtime *image;

	if (!runtime || runtime->text.start != start) {
		/* Where it is not known in which file it is, each is asked about again. */
		if (!runtime || runtime->text.start)
			target_map__know_other(images->map, key, began && runtime);
		return;
	}
	/* A process may make files that each are another one without end. */
	if (images->count == KNOWN_FILES_MAX)
		return;
	images->runtimes = xgrow(images->runtimes, &images->capacity, images->count + 1,
				 sizeof(*images->runtimes));
	image = &images->runtimes[images->count++];
	*image = *runtime;
	runtime__move(image, -runtime->text.bias);
	text = (struct text_place){ image->text.offset, image->text.start };
	target_map__know_python(images->map, key, text, images->count, image);
}

bool images__runtime(const struct images *images, uint32_t number, uint64_t bias,
		     struct runtime *runtime)
{
	if (!number || number > images->count)
		return false;
	*runtime = images->runtimes[number - 1];
	runtime__move(runtime, bias);
	return true;
}
