/* SPDX-License-Identifier: BSD-2-Clause */
/* Exit statuses of the program, as in docs/usage.md. */
#ifndef PYBPFPROF_EXIT_STATUS_H
#define PYBPFPROF_EXIT_STATUS_H

enum exit_status {
	STATUS_WRITTEN = 0,	/* a profile was written; `check`: `record` works */
	STATUS_FAILED = 1,	/* it could not be written, or another error */
	STATUS_USAGE = 2,	/* an option or a value is wrong */
	STATUS_NOT_PYTHON = 3,	/* not a Python process, or a version that is not supported */
	STATUS_NOT_ALLOWED = 4, /* the kernel or the permissions forbid it */
	STATUS_NO_SAMPLE = 5,	/* no sample came; `report`: the store has none */
};

#endif
