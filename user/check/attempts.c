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
		      "no room for %u more beside its own thread: %s", trial->needs.company,
		      strerror(-trial->company));
	findings__mend(findings, "%s", mends__start(trial->company));
	return true;
}

void check_processes(const struct trial *trial, struct findings *findings)
{
	static const char allow[] =
		"allow the system call in the container's seccomp profile or the security module; "
		"see also CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE";

	if (add_failure(findings, trial->child, "fork", mends__start(trial->child)) ||
	    add_failure(findings, trial->thread, "cannot start a thread",
			mends__start(trial->thread)) ||
	    add_company(findings, trial) ||
	    add_failure(findings, trial->finding, "cannot read another process's files", allow) ||
	    add_failure(findings, trial->reading, "process_vm_readv", allow))
		return;
	findings__add_ok(findings, "can read another process's files and memory");
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
			      "not tried: there is no process to try it on");
		findings__mend(findings, "see processes");
	} else if ((!trial->loading ||
		    !checks__add_obstacle(findings, privileges__load(trial->loading, false))) &&
		   !add_failure(findings, trial->following, "cannot follow processes",
				"use a kernel with CONFIG_BPF_EVENTS=y, and grant CAP_PERFMON")) {
		findings__add_ok(findings, "loaded");
	}
}

void check_native_frames(const struct trial *trial, struct findings *findings)
{
	enum verdict verdict = trial->needs.native ? VERDICT_MISSING : VERDICT_LIMITED;
	const char *costs =
		trial->needs.native ? "the agent does not start" : "--native does not work";

	if (trial->child || trial->loading) {
		findings__add(findings, verdict, costs, "not tried");
		findings__mend(findings, "see BPF program");
	} else if (trial->native) {
		findings__add(findings, verdict, costs, "cannot be walked: %s",
			      strerror(-trial->native));
		findings__mend(findings, "%s",
			       trial->native == -ENOMEM ? "see memory"
			       : trial->native == -EPERM
				       ? "grant CAP_BPF; before Linux 5.11 also ulimit -l unlimited"
				       : "use a newer kernel; pybpfprof record "
					 "-n -v shows its reasons");
	} else {
		findings__add_ok(findings, "can be walked");
	}
}

void check_sample(const struct trial *trial, struct findings *findings)
{
	bool ended_before = trial->killed && !trial->samples;

	if (trial->child || trial->loading || trial->following || trial->starting || ended_before) {
		findings__add(findings, VERDICT_MISSING, NOT_STARTED, "not tried");
		findings__mend(findings, "fix what is MISSING above");
	} else if (!trial->samples) {
		findings__add(findings, VERDICT_MISSING, "profiles are empty",
			      "none from a busy process");
		findings__mend(findings, "fix what is MISSING above; otherwise give this process a "
					 "larger share of the CPUs");
	} else if (trial->outcome != OUTCOME_NO_INTERPRETER) {
		findings__add(findings, VERDICT_MISSING, "stacks cannot be read", "came out as %s",
			      outcome__name(trial->outcome));
		findings__mend(findings,
			       "see lockdown, and please report it with this kernel's version");
	} else {
		findings__add_ok(findings, "taken from a busy process");
	}
}
