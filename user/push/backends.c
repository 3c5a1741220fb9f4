// SPDX-License-Identifier: BSD-2-Clause
#include "push/backend.h"

const struct push_backend *const push_backends[] = {
	&push_pyroscope,
	&push_parca,
	&push_otlp,
	NULL,
};
