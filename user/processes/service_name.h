/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The name by which a process's environment calls its service, as OpenTelemetry has it:
 *
 *	OTEL_SERVICE_NAME=web
 *	OTEL_RESOURCE_ATTRIBUTES=service.name=web,service.version=1.2
 *
 * The first one counts, where it is not empty.  A value of the other has %2C for a comma.
 *
 * And the archive of PEX's by which a process was started, before it was unpacked:
 *
 *	PEX=/srv/shop.pex
 */
#ifndef PYBPFPROF_SERVICE_NAME_H
#define PYBPFPROF_SERVICE_NAME_H

#include <stddef.h>

/* The name in VARIABLES, LENGTH bytes of a /proc/PID/environ, in which a NUL ends each one and one
 * without was cut.  At most 255 bytes, which the caller frees; NULL where there is none. */
char *service_name__of(const char *variables, size_t length);

/* The same of that archive, without its folders: "shop.pex". */
char *service_name__archive(const char *variables, size_t length);

#endif
