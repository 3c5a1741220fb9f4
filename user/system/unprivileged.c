// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/log.h"
#include "system/capabilities.h"
#include "system/system_calls.h"
#include "system/unprivileged.h"

bool unprivileged__become(const char *name)
{
	int error = capabilities__limit(0, false);

	prctl(PR_SET_NAME, name);
	if (!error && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		error = -errno;
	if (!error)
		error = system_calls__confine(NETWORK_ALLOWED);
	/* A kernel without such a filter; the privileges are given up. */
	if (error == -EINVAL)
		error = 0;
	if (error)
		log__error("process %s cannot drop its privileges: %s", name, strerror(-error));
	return !error;
}
