// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <string.h>

#include "check/checks.h"
#include "profile/ledger.h"

static bool add_failure(struct findings *findings, int error, const char *what, const char *mend)
{
	if (!error)
		return false;
	findings__add(findings, VERDICT_MISSING, NOT_STARTED, "%s: %s", what, strerror(-error));
	findings__mend(findings, "%s", mend);
	return true;
}

void check_processes(const struct trial *trial, struct findings *findings)
{
	static const char allow[] =
		"allow the system call: a container's seccomp profile, or a security module, may "
		"not; see CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE as well";

	if (add_failure(findings, trial->child, "fork", "raise ulimit -u, or pids.max") ||
	    add_failure(findings, trial->finding, "another process's files", allow) ||
	    add_failure(findings, trial->reading, "process_vm_readv", allow))
		return;
	findings__add_ok(findings, "another one's files and memory can be read");
}

void check_program(const struct trial *trial, struct findings *findings)
{
	if (trial->child) {
		findings__add(findings, VERDICT_MISSING, NOT_STARTED,
			      "not tried without a process");
		findings__mend(findings, "see processes");
	} else if ((!trial->loading ||
		    !checks__add_obstacle(findings, privileges__load(trial->loading))) &&
		   !add_failure(findings, trial->following, "what becomes of processes",
				"a kernel with CONFIG_BPF_EVENTS=y is needed, and CAP_PERFMON")) {
		findings__add_ok(findings, "loaded");
	}
}

void check_sample(const struct trial *trial, struct findings *findings)
{
	if (trial->child || trial->loading || trial->following || trial->starting) {
		findings__add(findings, VERDICT_MISSING, NOT_STARTED, "not tried");
		findings__mend(findings, "see what is MISSING above");
	} else if (!trial->samples) {
		findings__add(findings, VERDICT_MISSING, "a profile is empty",
			      "none of a process that spins");
		findings__mend(findings, "see what is MISSING above; else give this process more "
					 "of a share of the CPUs");
	} else if (trial->outcome != OUTCOME_NO_INTERPRETER) {
		findings__add(findings, VERDICT_MISSING, "stacks cannot be read", "came to: %s",
			      outcome__name(trial->outcome));
		findings__mend(findings, "see lockdown, and report it with this kernel's version");
	} else {
		findings__add_ok(findings, "taken of a process that spins");
	}
}
