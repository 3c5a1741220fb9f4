// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/xalloc.h"
#include "reading/fuse_mount.h"
#include "reading/process.h"

/* It precedes the type of a mount.  The kernel writes blanks in paths as \040. */
#define BEFORE_TYPE " - "
#define USER_OPTION "user_id="

/* What follows the first BLANKS blanks in TEXT; NULL if there are fewer. */
static const char *behind_blanks(const char *text, int blanks)
{
	while (text && blanks--) {
		text = strchr(text, ' ');
		text = text ? text + 1 : NULL;
	}
	return text;
}

/* Whether LINE of a mountinfo is such a mount, with *DEVICE and *OWNER. */
static bool parse(const char *line, dev_t *device, uid_t *owner)
{
	const char *type = strstr(line, BEFORE_TYPE), *options, *user;
	unsigned int major_number, minor_number;

	if (!type || sscanf(line, "%*u %*u %u:%u", &major_number, &minor_number) != 2)
		return false;
	type += strlen(BEFORE_TYPE);
	options = behind_blanks(type, 2);
	if (strncmp(type, "fuse", 4) != 0 || !options || strstr(options, "allow_other"))
		return false;
	user = strstr(options, USER_OPTION);
	*device = makedev(major_number, minor_number);
	return user && sscanf(user + strlen(USER_OPTION), "%u", owner) == 1;
}

static bool maps_device(const struct mapping *mappings, ssize_t count, dev_t device)
{
	for (ssize_t i = 0; i < count; i++)
		if (mappings[i].device == device)
			return true;
	return false;
}

bool fuse_mount__owner(pid_t pid, uid_t *owner)
{
	pid_t reader = process__reader(pid);
	char *text = xcalloc(1, TARGET_FILE_BLOCK_BYTES + 1), *next = text, *line;
	struct mapping *mappings;
	bool cut, found = false;
	ssize_t count = process__program_mappings(pid, reader, &mappings, &cut);
	dev_t device;

	process__read_file(pid, reader, "mountinfo", text, TARGET_FILE_BLOCK_BYTES);
	while (!found && (line = strsep(&next, "\n")))
		found = parse(line, &device, owner) && maps_device(mappings, count, device);
	free(mappings);
	free(text);
	return found;
}
