// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "check/checks.h"
#include "profile/ledger.h"
#include "system/mends.h"
#include "system/open_files.h"

/* What mends ERROR, where that says it whatever was tried; else OTHER. */
static const char *choose_mend(int error, const char *other)
{
	if (error == -EAGAIN || error == -ENOMEM || open_files__ran_out(error))
		return mends__start(error);
	return other;
}

static bool add_failure(struct findings *findings, int error, const char *what, const char *mend)
{
	if (!error)
		return false;
	findings__add(findings, VERDICT_MISSING, NOT_STARTED, "%s: %s", what, strerror(-error));
	findings__mend(findings, "%s", choose_mend(error, mend));
	return true;
}

/* What runs beside the profiler cannot: of record, the program behind -- alone. */
static bool add_company(struct findings *findings, const struct trial *trial)
{
	if (!trial->company)
		return false;
	findings__add(findings, VERDICT_MISSING, findings->without_company,
		      "no room for %u more beside a thread of its own: %s", trial->company_count,
		      strerror(-trial->company));
	findings__mend(findings, "%s", mends__start(trial->company));
	return true;
}

void check_processes(const struct trial *trial, struct findings *findings)
{
	static const char allow[] =
		"allow the system call: a container's seccomp profile, or a security module, may "
		"not; see CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE as well";

	if (add_failure(findings, trial->child, "fork", mends__start(trial->child)) ||
	    add_failure(findings, trial->thread, "a thread of its own",
			mends__start(trial->thread)) ||
	    add_company(findings, trial) ||
	    add_failure(findings, trial->finding, "another process's files", allow) ||
	    add_failure(findings, trial->reading, "process_vm_readv", allow))
		return;
	findings__add_ok(findings, "another one's files and memory can be read");
}

void check_signals(const struct trial *trial, struct findings *findings)
{
	sigset_t none;
	int fd;

	(void)trial;
	sigemptyset(&none);
	fd = signalfd(-1, &none, SFD_CLOEXEC);
	if (fd < 0) {
		checks__add_obstacle(findings, privileges__signals(-errno));
		return;
	}
	close(fd);
	findings__add_ok(findings, "can be read");
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
	bool ended_before = trial->killed && !trial->samples;

	if (trial->child || trial->loading || trial->following || trial->starting || ended_before) {
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
