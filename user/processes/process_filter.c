// SPDX-License-Identifier: BSD-2-Clause
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "processes/cgroup.h"
#include "processes/command_name.h"
#include "processes/process_filter.h"
#include "system/passwd.h"

#define PREFIX_LENGTH_MIN 4
#define HEX		  "0123456789abcdef"

struct process_rule {
	const struct kind *kind;
	bool excludes;
	char *text;
	char *hierarchy; /* of a cgroup; NULL: any */
	uid_t uid;
};

/* The kinds of rules. */
struct kind {
	const char *name;
	/* Parses TEXT into *RULE.  Returns NULL, or an error message that the caller frees. */
	char *(*parse)(struct process_rule *rule, const char *text);
	bool (*meets)(const struct process_rule *rule, const struct identity *identity);
};

static char *parse_comm(struct process_rule *rule, const char *text)
{
	if (!*text)
		return xstrdup("the name pattern is empty");
	rule->text = xstrdup(text);
	return NULL;
}

/* "uvicorn shop:app" also matches by the program's name alone. */
static bool meets_short_name(const struct process_rule *rule, const char *name)
{
	size_t length = command_name__runner_length(name);
	char *runner = length ? xstrndup(name, length) : NULL;
	bool meets = fnmatch(rule->text, name, 0) == 0 ||
		     (runner && fnmatch(rule->text, runner, 0) == 0);

	free(runner);
	return meets;
}

static bool meets_comm(const struct process_rule *rule, const struct identity *identity)
{
	return (identity->short_name && meets_short_name(rule, identity->short_name)) ||
	       (identity->comm && fnmatch(rule->text, identity->comm, 0) == 0);
}

static char *parse_cgroup(struct process_rule *rule, const char *text)
{
	if (*text != '/')
		return xasprintf("cgroup '%s' is not a path: it must begin with /", text);
	rule->text = cgroup__of_folder(text, &rule->hierarchy);
	if (rule->text)
		return NULL;
	if (strncmp(text, "/sys/", strlen("/sys/")) == 0)
		return xasprintf("cgroup '%s' is not in a cgroup hierarchy mounted here", text);
	rule->text = xstrdup(text);
	return NULL;
}

static bool meets_cgroup(const struct process_rule *rule, const struct identity *identity)
{
	return identity->cgroups &&
	       cgroup__is_within(identity->cgroups, rule->hierarchy, rule->text);
}

static char *parse_container(struct process_rule *rule, const char *text)
{
	const char *runtime_end = strstr(text, "://");
	const char *id = runtime_end ? runtime_end + strlen("://") : text;

	if (!*id || strchr(id, '/'))
		return xasprintf("container '%s' is not an ID", text);
	/* After a runtime, it is a full name, which may be as short. */
	if (id == text && strlen(id) < PREFIX_LENGTH_MIN && !id[strspn(id, HEX)])
		return xasprintf("container '%s' is too short for an ID: give at least %d digits, "
				 "or lxc://%s if it is a full name",
				 text, PREFIX_LENGTH_MIN, text);
	rule->text = xstrdup(id);
	return NULL;
}

/* Only an ID of hexadecimal digits may be abbreviated, not a name. */
static bool meets_container(const struct process_rule *rule, const struct identity *identity)
{
	const char *id = identity->container_id;
	size_t length = strlen(rule->text);

	if (!id)
		return false;
	if (strcmp(id, rule->text) == 0)
		return true;
	return length >= PREFIX_LENGTH_MIN && strncmp(id, rule->text, length) == 0 &&
	       strlen(id) == CONTAINER_ID_LENGTH && !id[strspn(id, HEX)];
}

static char *parse_uid(struct process_rule *rule, const char *text)
{
	if (passwd__parse_id(text, &rule->uid) || passwd__uid(text, &rule->uid))
		return NULL;
	return xasprintf("user '%s' is neither a number nor a name in /etc/passwd", text);
}

static bool meets_uid(const struct process_rule *rule, const struct identity *identity)
{
	return identity->user && rule->uid == identity->uid;
}

static const struct kind kinds[] = {
	{ "comm", parse_comm, meets_comm },
	{ "cgroup", parse_cgroup, meets_cgroup },
	{ "container", parse_container, meets_container },
	{ "uid", parse_uid, meets_uid },
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/* The kind whose name is the LENGTH bytes at NAME. */
static const struct kind *find_kind(const char *name, size_t length)
{
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, name, length) == 0)
			return &kinds[i];
	return NULL;
}

char *process_filter__add(struct process_filter *filter, const char *kind, const char *text)
{
	bool excludes = strcmp(kind, "exclude") == 0;
	const char *equals = excludes ? strchr(text, '=') : NULL;
	const struct kind *found =
		equals ? find_kind(text, equals - text) : find_kind(kind, strlen(kind));
	struct process_rule *rule;
	char *error;

	if (!found)
		return xasprintf("exclusion '%s' is not comm=GLOB, cgroup=PATH, container=ID or "
				 "uid=USER",
				 text);
	filter->rules = xreallocarray(filter->rules, filter->count + 1, sizeof(*rule));
	rule = &filter->rules[filter->count];
	*rule = (struct process_rule){ .kind = found, .excludes = excludes };
	error = found->parse(rule, equals ? equals + 1 : text);
	if (!error)
		filter->count++;
	return error;
}

void process_filter__free(struct process_filter *filter)
{
	for (size_t i = 0; i < filter->count; i++) {
		free(filter->rules[i].text);
		free(filter->rules[i].hierarchy);
	}
	free(filter->rules);
	memset(filter, 0, sizeof(*filter));
}

bool process_filter__is_empty(const struct process_filter *filter)
{
	return !filter->count;
}

bool process_filter__wants(const struct process_filter *filter, const struct identity *identity)
{
	bool asked[KIND_COUNT] = { false }, met[KIND_COUNT] = { false };

	for (size_t i = 0; i < filter->count; i++) {
		const struct process_rule *rule = &filter->rules[i];
		bool meets = rule->kind->meets(rule, identity);

		if (rule->excludes && meets)
			return false;
		if (rule->excludes)
			continue;
		asked[rule->kind - kinds] = true;
		met[rule->kind - kinds] |= meets;
	}
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (asked[i] && !met[i])
			return false;
	return true;
}

bool process_filter__can_tell(const struct process_filter *filter, const struct identity *identity)
{
	if (identity->user)
		return true;
	/* The name alone is enough if it matches and there are no other rules. */
	for (size_t i = 0; i < filter->count; i++)
		if (filter->rules[i].excludes || filter->rules[i].kind->meets != meets_comm)
			return false;
	return process_filter__wants(filter, identity);
}
