// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "options/option_table.h"

static void free_setting(struct setting *setting)
{
	free(setting->value);
	free(setting->place);
}

void settings__free(struct settings *settings)
{
	for (size_t i = 0; i < settings->count; i++)
		free_setting(&settings->list[i]);
	free(settings->list);
	*settings = (struct settings){ 0 };
}

const struct setting *settings__next(const struct settings *settings, const struct option *option,
				     const struct setting *previous)
{
	size_t at = previous ? previous - settings->list + 1 : 0;

	while (at < settings->count && settings->list[at].option != option)
		at++;
	return at < settings->count ? &settings->list[at] : NULL;
}

void settings__drop(struct settings *settings, const struct option *option)
{
	size_t kept = 0;

	for (size_t i = 0; i < settings->count; i++) {
		struct setting *setting = &settings->list[i];

		if (setting->option != option) {
			settings->list[kept++] = *setting;
			continue;
		}
		free_setting(setting);
	}
	settings->count = kept;
}

void settings__add(struct settings *settings, const struct option *option, enum origin origin,
		   const char *value, const char *place)
{
	const struct setting *before = settings__next(settings, option, NULL);

	if (before && before->origin > origin)
		return;
	if (before && (before->origin < origin || !(option->flags & (OPTION_LIST | OPTION_RULES))))
		settings__drop(settings, option);
	settings->list = xgrow(settings->list, &settings->capacity, settings->count + 1,
			       sizeof(*settings->list));
	settings->list[settings->count++] =
		(struct setting){ option, origin, xstrdup(value), xstrdup(place) };
}

char *settings__try(struct settings *settings, const struct option *option, enum origin origin,
		    const char *value, const char *place)
{
	if (!option->argument && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
		return xasprintf("%s '%s' is not true or false", option->name, value);
	settings__add(settings, option, origin, value, place);
	return NULL;
}
