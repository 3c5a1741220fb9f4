// SPDX-License-Identifier: BSD-2-Clause
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

void out_of_memory(void)
{
	fputs("pybpfprof: out of memory\n", stderr);
	exit(1);
}

static void *must(void *memory)
{
	if (!memory)
		out_of_memory();
	return memory;
}

void *xmalloc(size_t size)
{
	return must(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
	return must(calloc(count ? count : 1, size ? size : 1));
}

void *xreallocarray(void *old, size_t count, size_t size)
{
	return must(reallocarray(old, count ? count : 1, size ? size : 1));
}

char *xstrdup(const char *string)
{
	return must(strdup(string));
}

char *xstrndup(const char *string, size_t length)
{
	return must(strndup(string, length));
}

char *xasprintf(const char *format, ...)
{
	va_list arguments;
	char *result;
	int length;

	va_start(arguments, format);
	length = vasprintf(&result, format, arguments);
	va_end(arguments);
	return must(length < 0 ? NULL : result);
}

void *xgrow(void *array, size_t *capacity, size_t needed, size_t size)
{
	if (needed <= *capacity)
		return array;
	while (*capacity < needed)
		*capacity = *capacity ? *capacity * 2 : 16;
	return xreallocarray(array, *capacity, size);
}

struct memory_stream {
	char **text;
	size_t *size, capacity;
};

static ssize_t append(void *cookie, const char *bytes, size_t count)
{
	struct memory_stream *stream = cookie;

	*stream->text = xgrow(*stream->text, &stream->capacity, *stream->size + count + 1, 1);
	memcpy(*stream->text + *stream->size, bytes, count);
	*stream->size += count;
	(*stream->text)[*stream->size] = '\0';
	return count;
}

static int close_stream(void *cookie)
{
	free(cookie);
	return 0;
}

char *xappend(char *list, const char *separator, const char *word)
{
	char *longer = xasprintf("%s%s%s", list, *list ? separator : "", word);

	free(list);
	return longer;
}

FILE *xopen_memstream(char **text, size_t *size)
{
	const cookie_io_functions_t functions = { .write = append, .close = close_stream };
	struct memory_stream *stream = xmalloc(sizeof(*stream));

	*stream = (struct memory_stream){ .text = text, .size = size, .capacity = 1 };
	*text = xstrdup("");
	*size = 0;
	return must(fopencookie(stream, "w", functions));
}

void xtrim(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
