// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "processes/cgroup.h"

#define HEX	    "0123456789abcdef"
#define HASH_LENGTH 32

/* Longer than the mount options of any hierarchy. */
#define OPTIONS_BYTES 1024

/* The kernel's mark of a cgroup that was removed before its last process ended. */
#define REMOVED " (deleted)"

/* A part of a path. */
struct text {
	const char *at;
	size_t length;
};

/* What the names of a path told, up to the current one.  A length of 0: nothing yet. */
struct findings {
	struct text before; /* the name before the current one */
	struct text id, pod, unit;
	const char *runtime;
};

/* The prefix of a container's cgroup tells its runtime. */
static const struct {
	const char *prefix, *runtime;
} runtimes[] = {
	{ "docker", "docker" }, { "cri-containerd", "containerd" }, { "crio", "cri-o" },
	{ "libpod", "podman" }, { "nerdctl", "containerd" },	    { "libpod-payload", "podman" },
};

static bool equals(struct text text, const char *string)
{
	return text.length == strlen(string) && memcmp(text.at, string, text.length) == 0;
}

/* Removes PREFIX from the start of TEXT, unless it is missing or is the whole text. */
static bool take_prefix(struct text *text, const char *prefix)
{
	size_t length = strlen(prefix);

	if (text->length <= length || memcmp(text->at, prefix, length) != 0)
		return false;
	text->at += length;
	text->length -= length;
	return true;
}

/* Removes SUFFIX from the end of TEXT, unless it is missing or is the whole text. */
static bool take_suffix(struct text *text, const char *suffix)
{
	size_t length = strlen(suffix);

	if (text->length <= length || memcmp(text->at + text->length - length, suffix, length) != 0)
		return false;
	text->length -= length;
	return true;
}

static bool begins_with(struct text text, const char *prefix)
{
	return take_prefix(&text, prefix);
}

static struct text up_to(struct text text, const char *end)
{
	return (struct text){ text.at, end - text.at };
}

static struct text behind(struct text text, const char *place)
{
	return (struct text){ place + 1, text.at + text.length - place - 1 };
}

/* Whether TEXT is LENGTH bytes, each one of CHARACTERS. */
static bool consists_of(struct text text, const char *characters, size_t length)
{
	if (text.length != length)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!text.at[i] || !strchr(characters, text.at[i]))
			return false;
	return true;
}

/* systemd replaces the hyphens of a UUID with underscores. */
static bool is_uuid(struct text text)
{
	static const size_t lengths[] = { 8, 4, 4, 4, 12 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t length = lengths[i];

		if (i && !take_prefix(&text, "-") && !take_prefix(&text, "_"))
			return false;
		if (text.length < length ||
		    !consists_of((struct text){ text.at, length }, HEX, length))
			return false;
		text.at += length;
		text.length -= length;
	}
	return !text.length;
}

static void set_container(struct findings *found, struct text id, const char *runtime)
{
	found->id = id;
	found->runtime = runtime;
	found->unit.length = 0;
}

/* "podUID", "kubepods-burstable-podUID.slice".  A static pod's UID is a hash. */
static bool find_pod(struct findings *found, struct text name)
{
	const char *hyphen;

	if (take_suffix(&name, ".slice")) {
		/* In a slice's name the UID has no hyphens, so "podUID" follows the last one. */
		hyphen = memrchr(name.at, '-', name.length);
		if (!hyphen)
			return false;
		name = behind(name, hyphen);
	}
	if (!take_prefix(&name, "pod") || !(is_uuid(name) || consists_of(name, HEX, HASH_LENGTH)))
		return false;
	found->pod = name;
	set_container(found, (struct text){ 0 }, NULL);
	return true;
}

/* Where the name is only an ID, the folder above it may tell the runtime. */
static const char *runtime_of_folder(struct text folder)
{
	if (equals(folder, "docker"))
		return "docker";
	return equals(folder, "k8s.io") ? "containerd" : NULL;
}

/* "ID", "RUNTIME-ID", "RUNTIME-ID.scope".  RUNTIME-conmon-ID is a container's monitor. */
static bool find_container(struct findings *found, struct text name)
{
	struct text id = name, unit = found->unit, prefix;

	take_suffix(&id, ".scope");
	if (id.length < CONTAINER_ID_LENGTH)
		return false;
	prefix = (struct text){ id.at, id.length - CONTAINER_ID_LENGTH };
	id = (struct text){ id.at + prefix.length, CONTAINER_ID_LENGTH };
	if (!consists_of(id, HEX, CONTAINER_ID_LENGTH))
		return false;
	if (!prefix.length) {
		set_container(found, id, runtime_of_folder(found->before));
		return true;
	}
	if ((!take_suffix(&prefix, "-") && !take_suffix(&prefix, ":")) ||
	    equals(prefix, "conmon") || take_suffix(&prefix, "-conmon"))
		return false;
	set_container(found, id, NULL);
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (equals(prefix, runtimes[i].prefix))
			found->runtime = runtimes[i].runtime;
	/* This container runs inside the service's own cgroup: the unit is still right. */
	if (equals(prefix, "libpod-payload"))
		found->unit = unit;
	return true;
}

static bool find_lxc(struct findings *found, struct text name)
{
	if (!take_prefix(&name, "lxc.payload.") && !equals(found->before, "lxc") &&
	    !equals(found->before, "lxc.payload"))
		return false;
	set_container(found, name, "lxc");
	return true;
}

/* systemd-machined's containers.  Virtual machines of libvirt are ordinary units. */
static bool find_machine(struct findings *found, struct text name)
{
	if (!equals(found->before, "machine.slice") || !take_prefix(&name, "machine-") ||
	    !take_suffix(&name, ".scope") || begins_with(name, "qemu\\x2d"))
		return false;
	set_container(found, name,
		      begins_with(name, "lxc\\x2d") ? "libvirt-lxc" : "systemd-nspawn");
	return true;
}

/* systemd-nspawn runs in a cgroup beside its container's.  Both are in one unit. */
static bool find_nspawn(struct findings *found, struct text name)
{
	struct text machine = found->before;

	if (equals(name, "supervisor") && begins_with(found->before, "machine-")) {
		set_container(found, (struct text){ 0 }, NULL);
		found->unit = found->before;
		return true;
	}
	if (!equals(name, "payload") || !take_prefix(&machine, "systemd-nspawn@") ||
	    !take_suffix(&machine, ".service"))
		return false;
	found->id = machine;
	found->runtime = "systemd-nspawn";
	return true;
}

static bool find_unit(struct findings *found, struct text name)
{
	static const char *const kinds[] = { ".service", ".scope", ".socket", ".mount", ".swap" };
	struct text stem;

	/* systemd puts it before names that look like a control file of the kernel. */
	take_prefix(&name, "_");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		stem = name;
		if (take_suffix(&stem, kinds[i])) {
			found->unit = name;
			return true;
		}
	}
	return false;
}

/* NAME is one name of the path, and is not empty. */
static void look_at(struct findings *found, struct text name)
{
	static bool (*const find[])(struct findings *, struct text) = {
		find_pod, find_container, find_lxc, find_machine, find_nspawn, find_unit,
	};

	for (size_t i = 0; i < sizeof(find) / sizeof(find[0]); i++)
		if (find[i](found, name))
			break;
	found->before = name;
}

/* "kubepods-podUID.slice:cri-containerd:ID" is one folder, which tells pod and container.  The
 * runtime got a name in systemd's syntax, and took it for a folder's. */
static void look_at_folder(struct findings *found, struct text name)
{
	const char *colon = NULL;

	if (name.length > CONTAINER_ID_LENGTH + 1 &&
	    name.at[name.length - CONTAINER_ID_LENGTH - 1] == ':')
		colon = memrchr(name.at, ':', name.length - CONTAINER_ID_LENGTH - 1);
	if (colon && colon > name.at)
		look_at(found, up_to(name, colon));
	if (colon)
		name = behind(name, colon);
	if (name.length)
		look_at(found, name);
}

static struct findings look_at_path(const char *path)
{
	struct findings found = { 0 };

	while (*path) {
		size_t length;

		path += *path == '/';
		length = strcspn(path, "/");
		look_at_folder(&found, (struct text){ path, length });
		path += length;
	}
	return found;
}

/* Ranks a path by what it tells. */
static int weigh(const struct findings *found)
{
	return (found->id.length ? 8 : 0) + (found->pod.length ? 4 : 0) +
	       (found->unit.length ? 2 : 0) + (found->before.length ? 1 : 0);
}

/* A hierarchy with a lower rank is preferred.  HIERARCHY lists its controllers; "" is version 2. */
static int rank(struct text hierarchy)
{
	static const char *const order[] = { "", "name=systemd", "memory", "cpu", "cpu,cpuacct" };
	int place = 0;

	while (place < (int)(sizeof(order) / sizeof(order[0])) && !equals(hierarchy, order[place]))
		place++;
	return place;
}

/* Takes the next of LINES, "NUMBER:HIERARCHY:PATH".  A last line without a newline was cut, and is
 * not taken. */
static bool take_line(const char **lines, struct text *hierarchy, struct text *path)
{
	const char *end = strchr(*lines, '\n'), *colon, *second;

	if (!end)
		return false;
	colon = memchr(*lines, ':', end - *lines);
	second = colon ? memchr(colon + 1, ':', end - colon - 1) : NULL;
	*hierarchy = second ? (struct text){ colon + 1, second - colon - 1 } : (struct text){ 0 };
	*path = second ? (struct text){ second + 1, end - second - 1 } : (struct text){ 0 };
	take_suffix(path, REMOVED);
	*lines = end + 1;
	return true;
}

static char *copy(struct text text)
{
	return text.length ? xstrndup(text.at, text.length) : NULL;
}

static int digit(char character)
{
	const char *place = character ? strchr(HEX, character) : NULL;

	return place ? place - HEX : -1;
}

/* Undoes systemd's \xNN in place, except for control characters. */
static char *unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from;) {
		if (from[0] == '\\' && from[1] == 'x' && digit(from[2]) > 1 &&
		    digit(from[3]) >= 0) {
			*to++ = digit(from[2]) << 4 | digit(from[3]);
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return text;
}

static void describe(const struct findings *found, struct cgroup *cgroup)
{
	cgroup->container_id = copy(found->id);
	cgroup->container_runtime = found->runtime;
	cgroup->pod_uid = copy(found->pod);
	cgroup->unit = copy(found->unit);
	for (char *at = cgroup->pod_uid; at && *at; at++)
		if (*at == '_')
			*at = '-';
	if (found->runtime && strcmp(found->runtime, "systemd-nspawn") == 0)
		unescape(cgroup->container_id);
}

void cgroup__parse(const char *lines, struct cgroup *cgroup)
{
	struct text hierarchy, path;
	int best = -1, best_rank = 0;

	memset(cgroup, 0, sizeof(*cgroup));
	while (take_line(&lines, &hierarchy, &path)) {
		char *text = copy(path);
		struct findings found;

		if (!text)
			continue;
		found = look_at_path(text);
		if (weigh(&found) > best ||
		    (weigh(&found) == best && rank(hierarchy) < best_rank)) {
			best = weigh(&found);
			best_rank = rank(hierarchy);
			cgroup__free(cgroup);
			describe(&found, cgroup);
			cgroup->path = text;
		} else {
			free(text);
		}
	}
}

void cgroup__free(struct cgroup *cgroup)
{
	free(cgroup->path);
	free(cgroup->container_id);
	free(cgroup->pod_uid);
	free(cgroup->unit);
	memset(cgroup, 0, sizeof(*cgroup));
}

/* The length of PATH without slashes at its end. */
static size_t path_length(const char *path)
{
	size_t length = strlen(path);

	while (length && path[length - 1] == '/')
		length--;
	return length;
}

/* Whether the path WITHIN is PATH or below it. */
static bool is_at_or_below(struct text within, const char *path)
{
	size_t length = path_length(path);

	return within.length >= length && memcmp(within.at, path, length) == 0 &&
	       (within.length == length || within.at[length] == '/');
}

/* Whether WORD is in LIST, which commas separate. */
static bool is_among(struct text word, const char *list)
{
	while (*list) {
		size_t length = strcspn(list, ",");

		if (length == word.length && memcmp(list, word.at, length) == 0)
			return true;
		list += length;
		list += *list == ',';
	}
	return false;
}

/* Whether a line's CONTROLLERS belong to the hierarchy with mount options OPTIONS.  The first one
 * decides: a controller is in one hierarchy only. */
static bool is_of_hierarchy(struct text controllers, const char *options)
{
	const char *comma = memchr(controllers.at, ',', controllers.length);

	if (!*options || !controllers.length)
		return !*options && !controllers.length;
	return is_among(comma ? up_to(controllers, comma) : controllers, options);
}

bool cgroup__is_within(const char *lines, const char *hierarchy, const char *path)
{
	struct text controllers, within;

	while (take_line(&lines, &controllers, &within))
		if (within.length && is_at_or_below(within, path) &&
		    (!hierarchy || is_of_hierarchy(controllers, hierarchy)))
			return true;
	return false;
}

/* Returns FOLDER's cgroup, if LINE of mountinfo mounts the hierarchy that FOLDER is in; otherwise
 * NULL.  The caller frees it.  *MOUNTED is then the length of the mount point, and OPTIONS has the
 * mount options; "" for version 2. */
static char *cgroup_of_mount(const char *line, const char *folder, size_t *mounted,
			     char options[OPTIONS_BYTES])
{
	char root[4096], point[4096], type[16];
	const char *behind_options = strstr(line, " - ");
	struct text within = { folder, strlen(folder) };

	if (!behind_options || sscanf(behind_options, " - %15s %*s %1023s", type, options) != 2 ||
	    (strcmp(type, "cgroup") != 0 && strcmp(type, "cgroup2") != 0) ||
	    sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) != 2 ||
	    !is_at_or_below(within, point))
		return NULL;
	if (strcmp(type, "cgroup2") == 0)
		*options = '\0';
	*mounted = path_length(point);
	return xasprintf("%s%s", strcmp(root, "/") == 0 ? "" : root, folder + *mounted);
}

char *cgroup__of_folder(const char *folder, char **hierarchy)
{
	char options[OPTIONS_BYTES];
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *best = NULL;
	size_t size = 0, longest = 0, mounted;

	*hierarchy = NULL;
	while (mounts && getline(&line, &size, mounts) > 0) {
		char *found = cgroup_of_mount(line, folder, &mounted, options);

		/* One hierarchy can be mounted below another: the longest mount point counts. */
		if (found && mounted >= longest) {
			free(best);
			free(*hierarchy);
			best = found;
			*hierarchy = xstrdup(options);
			longest = mounted;
		} else {
			free(found);
		}
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return best;
}
