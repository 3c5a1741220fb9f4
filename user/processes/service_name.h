/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service name in the environment of a process, as OpenTelemetry defines it:
 *
 *	OTEL_SERVICE_NAME=web
 *	OTEL_RESOURCE_ATTRIBUTES=service.name=web,service.version=1.2
 *
 * The first variable counts unless it is empty.  In the second, %2C is a comma.
 *
 * Also the PEX archive from which the process was started:
 *
 *	PEX=/srv/shop.pex
 */
#ifndef PYBPFPROF_SERVICE_NAME_H
#define PYBPFPROF_SERVICE_NAME_H

#include <stddef.h>

/* Returns the service name in VARIABLES, LENGTH bytes of a /proc/PID/environ.  Each variable ends
 * with a NUL.  One without was cut, and is ignored.  The caller frees the name.  NULL: there is
 * none, or it is longer than 255 bytes. */
char *service_name__of(const char *variables, size_t length);

/* Returns the name of the archive, without its folders: "shop.pex".  The caller frees it.  NULL:
 * there is none. */
char *service_name__archive(const char *variables, size_t length);

#endif
