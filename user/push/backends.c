// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "output/output.h"
#include "profile/plain_text.h"
#include "push/backend.h"

const struct push_backend *const push_backends[] = {
	&push_pyroscope,
	&push_parca,
	&push_otlp,
	NULL,
};

char *push_label_value(const json_t *value)
{
	return output__shorten(plain_text__escape(json_string_value(value), SIZE_MAX),
			       LABEL_VALUE_BYTES_MAX);
}

void push_add_pprof(struct body *body, const struct batch *batch)
{
	const struct output_options options = { .title = NULL };
	char *bytes;
	size_t length;
	FILE *file = xopen_memstream(&bytes, &length);

	if (output_pprof.write(batch->profile, &options, file))
		out_of_memory();
	fclose(file);
	body__add(body, bytes, length);
	free(bytes);
}

void pieces__end(struct pieces *pieces)
{
	if (!pieces->body.length)
		return;
	body__add_text(&pieces->body, pieces->end);
	pieces->take(pieces->context, &pieces->body, pieces->samples);
	pieces->body = (struct body){ 0 };
	pieces->samples = 0;
}

void pieces__add(struct pieces *pieces, const struct body *piece, uint64_t samples)
{
	if (pieces->body.length + piece->length > REQUEST_BYTES)
		pieces__end(pieces);
	body__add_text(&pieces->body, pieces->body.length ? pieces->separator : pieces->begin);
	body__add(&pieces->body, piece->bytes, piece->length);
	pieces->samples += samples;
}
