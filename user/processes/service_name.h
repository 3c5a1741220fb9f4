/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service name that the environment of a process gives it, as OpenTelemetry defines it:
 *
 *	OTEL_SERVICE_NAME=web
 *	OTEL_RESOURCE_ATTRIBUTES=service.name=web,service.version=1.2
 *
 * The first one counts unless it is empty.  In the other, %2C is a comma.
 *
 * Also the PEX archive from which the process was started:
 *
 *	PEX=/srv/shop.pex
 */
#ifndef PYBPFPROF_SERVICE_NAME_H
#define PYBPFPROF_SERVICE_NAME_H

#include <stddef.h>

/* Returns the service name in VARIABLES, LENGTH bytes of a /proc/PID/environ: each variable ends
 * with a NUL, and one without was cut.  At most 255 bytes, which the caller frees; NULL: none. */
char *service_name__of(const char *variables, size_t length);

/* The same for the archive, without its folders: "shop.pex". */
char *service_name__archive(const char *variables, size_t length);

#endif
