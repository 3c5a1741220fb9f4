/* SPDX-License-Identifier: BSD-2-Clause */
/* How the program ends; docs/usage.md has the same table. */
#ifndef PYBPFPROF_EXIT_STATUS_H
#define PYBPFPROF_EXIT_STATUS_H

enum exit_status {
	STATUS_WRITTEN = 0,	/* a profile was written; of `check`: `record` works */
	STATUS_FAILED = 1,	/* it could not be written, or something else failed */
	STATUS_USAGE = 2,	/* an option or a value is wrong */
	STATUS_NOT_PYTHON = 3,	/* no Python process, or a version that is not supported */
	STATUS_NOT_ALLOWED = 4, /* the kernel or the permissions do not allow it */
	STATUS_NO_SAMPLE = 5,	/* no sample came; of `report`: there is none */
};

#endif
