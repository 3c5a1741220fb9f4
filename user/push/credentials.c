// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "push/body.h"
#include "push/credentials.h"

/* Tokens of service accounts have about 1,000 bytes. */
#define BYTES_MAX (16 * 1024)

/* Reads the first line of FILE.  0, or -errno. */
static int read_line(const char *file, char line[BYTES_MAX])
{
	/* A pipe must not block. */
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t length;
	int error;

	if (fd < 0)
		return -errno;
	length = read(fd, line, BYTES_MAX - 1);
	error = length < 0 ? -errno : length == BYTES_MAX - 1 ? -EFBIG : 0;
	close(fd);
	if (error)
		return error;
	line[length] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	return 0;
}

/* A control character could end the header. */
static bool is_printable(const char *line)
{
	for (; *line; line++)
		if ((unsigned char)*line < ' ' || *line == '\x7f')
			return false;
	return true;
}

static char *make_header(const char *line, enum credentials_kind kind)
{
	struct body body = { 0 };

	if (kind == CREDENTIALS_TOKEN)
		return xasprintf("Authorization: Bearer %s", line);
	body__add_text(&body, "Authorization: Basic ");
	body__add_base64(&body, line, strlen(line));
	body__add(&body, "", 1);
	return (char *)body.bytes;
}

char *credentials__header(const char *file, enum credentials_kind kind, char **wrong)
{
	char *line = xmalloc(BYTES_MAX), *header = NULL;
	int error = read_line(file, line);

	if (error)
		*wrong = xasprintf("cannot read %s: %s", file, strerror(-error));
	else if (!*line || !is_printable(line))
		*wrong = xasprintf("%s does not start with a line of text", file);
	else if (kind == CREDENTIALS_USER && !strchr(line, ':'))
		*wrong = xasprintf("%s does not start with NAME:PASSWORD", file);
	else
		header = make_header(line, kind);
	explicit_bzero(line, BYTES_MAX);
	free(line);
	return header;
}
