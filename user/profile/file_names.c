// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shows files by short names that are unique in the profile: two files with the same name get one
 * more folder each, until all names differ.  This starts anew each time, because the set of files
 * may have changed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "profile/profile.h"

/* Names that need more folders are shown in full: a target can have files whose paths differ only
 * in the first of a thousand folders. */
#define FOLDERS_MAX 16

/* A full name may equal another file's short one, which takes one more round.  Such a short name is
 * not absolute as full names are, so this cannot go on and on. */
#define ROUNDS_MAX (FOLDERS_MAX + 4)

struct file {
	const char *full, *shown; /* SHOWN is the key of the hash */
	bool is_end;		  /* SHOWN is an end of FULL; not so for "In [3]" of a notebook */
	bool ambiguous;
	UT_hash_handle hh;
};

/* Adds a folder to the file's name. */
static void lengthen(struct file *file)
{
	const char *full = file->full, *shown = file->is_end ? file->shown : full;

	while (shown > full && shown[-1] == '/')
		shown--;
	while (shown > full && shown[-1] != '/')
		shown--;
	file->shown = shown;
	file->is_end = true;
}

static struct file file_of(const char *full, const char *short_name)
{
	size_t length = strlen(full), end = strlen(short_name);
	bool is_end = end <= length && strcmp(full + length - end, short_name) == 0;

	return (struct file){ .full = full,
			      .shown = is_end ? full + length - end : short_name,
			      .is_end = is_end };
}

/* Marks the files whose names are ambiguous; returns whether there are any. */
static bool find_ambiguous(struct file *files, size_t count)
{
	struct file *by_name = NULL, *other;
	bool found = false;

	for (size_t i = 0; i < count; i++) {
		struct file *file = &files[i];

		HASH_FIND_STR(by_name, file->shown, other);
		file->ambiguous = other;
		if (other)
			found = other->ambiguous = true;
		else
			HASH_ADD_KEYPTR(hh, by_name, file->shown, strlen(file->shown), file);
	}
	HASH_CLEAR(hh, by_name);
	return found;
}

static void tell_apart(struct file *files, size_t count)
{
	for (int round = 0; round < ROUNDS_MAX && find_ambiguous(files, count); round++)
		for (size_t i = 0; i < count; i++)
			if (files[i].ambiguous && round < FOLDERS_MAX)
				lengthen(&files[i]);
			else if (files[i].ambiguous)
				files[i].shown = files[i].full;
}

/* Adds the file of FUNCTION if it is new.  PLACES: by path, its index in FILES + 1. */
static void add_file(const struct profile *profile, const struct profile_function *function,
		     struct file *files, size_t *count, uint32_t *places)
{
	struct file added = file_of(profile->strings[function->filename],
				    profile->strings[function->short_filename]);
	uint32_t *place = &places[function->filename];

	if (!*place) {
		*place = ++*count;
		files[*count - 1] = added;
	} else if (strlen(added.shown) > strlen(files[*place - 1].shown)) {
		files[*place - 1] = added;
	}
}

void profile__tell_files_apart(struct profile *profile)
{
	struct file *files = xcalloc(profile->function_count + 1, sizeof(*files));
	uint32_t *places = xcalloc(profile->string_count, sizeof(*places));
	size_t count = 0;

	for (size_t i = 0; i < profile->function_count; i++)
		if (profile->functions[i].filename)
			add_file(profile, &profile->functions[i], files, &count, places);
	tell_apart(files, count);
	for (size_t i = 0; i < profile->function_count; i++) {
		struct profile_function *function = &profile->functions[i];

		if (function->filename)
			function->shown_filename = profile__string(
				profile, files[places[function->filename] - 1].shown);
	}
	free(places);
	free(files);
}
