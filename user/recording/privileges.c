// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/small_file.h"
#include "base/xalloc.h"
#include "events/tracepoint_types.h"
#include "processes/pid_namespace.h"
#include "reading/reader.h"
#include "recording/privileges.h"
#include "sampling/sampler.h"
#include "system/capabilities.h"
#include "system/cpus.h"
#include "system/limits.h"
#include "system/passwd.h"
#include "system/system_calls.h"
#include "unwind/kernel_symbols.h"

#define RATE_LIMIT_PATH "/proc/sys/kernel/perf_event_max_sample_rate"

/* Yama's mode in which not even CAP_SYS_PTRACE gives access. */
#define PTRACE_SCOPE_NOBODY 3

/* PROC_USER_INIT_INO of the kernel's include/linux/proc_ns.h. */
#define FIRST_USER_NAMESPACE 0xeffffffd

/* With these, root writes files in other users' folders and gives them to the caller of sudo.
 * Other users do not have them. */
static const int to_write_as_root[] = { CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER };

static const struct obstacle nothing;

static struct obstacle obstacle(char *what, const char *mend)
{
	return (struct obstacle){ what, xstrdup(mend), false };
}

/* An obstacle that may follow from another one. */
static struct obstacle follower(char *what, const char *mend)
{
	return (struct obstacle){ what, xstrdup(mend), true };
}

void obstacle__free(struct obstacle *obstacle)
{
	free(obstacle->what);
	free(obstacle->mend);
	*obstacle = nothing;
}

static struct obstacle short_of_memory(const char *what_for)
{
	return obstacle(xasprintf("not enough memory for %s", what_for), MEMORY_MENDS);
}

enum exit_status obstacle__say(struct obstacle obstacle)
{
	log__error("%s: %s%s", obstacle.what, obstacle.mend,
		   obstacle.follows ? "; run pybpfprof check to see what else is missing" : "");
	obstacle__free(&obstacle);
	return STATUS_NOT_ALLOWED;
}

bool privileges__read_number(const char *path, double *number)
{
	char text[64];

	small_file__read(path, text, sizeof(text));
	return sscanf(text, "%lf", number) == 1;
}

double privileges__rate_limit(void)
{
	double limit;

	return privileges__read_number(RATE_LIMIT_PATH, &limit) ? limit : 0;
}

bool privileges__kernel_is(unsigned int major, unsigned int minor)
{
	unsigned int found_major, found_minor;
	struct utsname kernel;

	if (uname(&kernel) || sscanf(kernel.release, "%u.%u", &found_major, &found_minor) != 2)
		return true;
	return found_major != major ? found_major > major : found_minor >= minor;
}

struct obstacle privileges__user_namespace(void)
{
	struct stat status;

	/* If that cannot be read, a later step fails, and says why. */
	if (stat("/proc/self/ns/user", &status) || status.st_ino == FIRST_USER_NAMESPACE)
		return nothing;
	return obstacle(xstrdup("this is a user namespace, and the kernel ignores the "
				"capabilities held in it"),
			"run as root on the host, or in a container without a user namespace");
}

struct obstacle privileges__pid_namespace(void)
{
	if (pid_namespace__has_proc())
		return nothing;
	return obstacle(xstrdup("/proc belongs to another PID namespace, so its PIDs mean other "
				"processes"),
			"mount the /proc of this namespace (unshare --mount-proc, or nsenter with "
			"--mount), or run on the host");
}

struct obstacle privileges__btf(void)
{
	struct statfs status;

	if (access(BTF_PATH, R_OK) == 0)
		return nothing;
	if (statfs("/sys", &status) || status.f_type != SYSFS_MAGIC)
		return obstacle(
			xstrdup("sysfs is not mounted at /sys, where the kernel's BTF "
				"is (" BTF_PATH ")"),
			"mount -t sysfs sysfs /sys, or mount the host's /sys in the container");
	return obstacle(xstrdup("this kernel has no BTF (" BTF_PATH ")"),
			"boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distribution kernels "
			"are");
}

struct obstacle privileges__cpus(void)
{
	ssize_t count = cpus__array_size();

	if (count > 0)
		return nothing;
	return obstacle(xasprintf("cannot read the list of CPUs (" CPUS_ONLINE_PATH ": %s)",
				  strerror(-count)),
			"mount sysfs at /sys, or the host's /sys in the container; if too many "
			"files are open, raise ulimit -n");
}

/* Before Linux 5.11 BPF maps count as locked memory. */
struct obstacle privileges__locked_memory(bool native)
{
	struct obstacle found = nothing;
	struct rlimit limit;
	uint64_t needed;

	if (privileges__kernel_is(5, 11) || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_max == RLIM_INFINITY ||
	    capabilities__have(capabilities__effective(), CAP_SYS_RESOURCE))
		return nothing;
	needed = sampler__map_bytes(native);
	if (limit.rlim_max >= needed)
		return nothing;
	found.what = xasprintf(
		"not permitted to lock %llu KiB of memory, only %llu KiB: before Linux "
		"5.11 this needs CAP_SYS_RESOURCE",
		(unsigned long long)needed >> 10, (unsigned long long)limit.rlim_max >> 10);
	found.mend = xstrdup("run as root (sudo pybpfprof ...), with CAP_SYS_RESOURCE, or after "
			     "ulimit -l unlimited");
	return found;
}

struct obstacle privileges__ptrace_scope(void)
{
	double scope;

	if (!privileges__read_number(PTRACE_SCOPE_PATH, &scope) || scope < PTRACE_SCOPE_NOBODY)
		return nothing;
	return obstacle(xasprintf("kernel.yama.ptrace_scope is %g: no process may read another "
				  "process's memory until the next boot",
				  scope),
			"set kernel.yama.ptrace_scope=2 in /etc/sysctl.d and reboot");
}

static struct obstacle find_thread(void)
{
	int error = reader__begin();

	if (!error)
		return nothing;
	return obstacle(
		xasprintf("cannot start the thread that reads processes (%s)", strerror(-error)),
		limits__mend_start(error));
}

/* Whether one of PIDS exists and belongs to another user.  A process that /proc hides (hidepid)
 * belongs to another user.  If there are none: whether a started program will run as another user,
 * the caller of sudo. */
static bool are_other_users(const pid_t *pids, size_t count)
{
	struct sudo_user user;
	struct stat status;
	char path[32];

	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/proc/%d", pids[i]);
		if (stat(path, &status) ? kill(pids[i], 0) && errno == EPERM
					: status.st_uid != geteuid())
			return true;
	}
	return !count && passwd__find_sudo_user(&user);
}

bool privileges__needs(const struct capability *capability, bool other_users)
{
	double scope;

	/* Yama protects processes of the same user from each other, too.  In mode 1 a process may
	 * read those that it started, but not those that they left behind. */
	return other_users || !capability->for_other_users ||
	       (capability->number == CAP_SYS_PTRACE &&
		privileges__read_number(PTRACE_SCOPE_PATH, &scope) && scope > 0);
}

/* BY_ROOT: root starts a program.  It keeps capabilities that this process drops.  So the kernel
 * refuses access to it without CAP_SYS_PTRACE, even if its user is the same. */
static struct obstacle find_capabilities(bool other_users, bool by_root)
{
	char *missing = xstrdup(""), *what_for = xstrdup(""), *all = xstrdup("");
	const struct capability *needed = capabilities__needed;
	uint64_t held = capabilities__effective();
	struct obstacle found = nothing;

	for (; needed->name; needed++) {
		all = xappend(all, needed[1].name ? ", " : " and ", needed->name);
		bool closed = by_root && needed->number == CAP_SYS_PTRACE;

		if (capability__find(needed, held) >= 0 ||
		    !(closed || privileges__needs(needed, other_users)))
			continue;
		missing = xappend(missing, ", ", needed->name);
		what_for = xappend(what_for, ", ", needed->what_for);
	}
	if (*missing) {
		found.what = xasprintf("not permitted to %s (missing %s)", what_for, missing);
		found.mend = xasprintf("run as root (sudo pybpfprof ...) or with %s", all);
	}
	free(missing);
	free(what_for);
	free(all);
	return found;
}

enum exit_status privileges__check(const pid_t *pids, size_t count, bool all, bool native)
{
	static struct obstacle (*const look[])(void) = {
		privileges__user_namespace, privileges__pid_namespace, privileges__btf,
		privileges__cpus,	    privileges__ptrace_scope,  find_thread,
	};
	struct obstacle found =
		find_capabilities(all || are_other_users(pids, count), !count && !geteuid());

	for (size_t i = 0; i < sizeof(look) / sizeof(look[0]) && !found.what; i++)
		found = look[i]();
	if (!found.what)
		found = privileges__locked_memory(native);
	return found.what ? obstacle__say(found) : STATUS_WRITTEN;
}

struct obstacle privileges__load(int error, bool native)
{
	struct obstacle memory = error == -EPERM ? privileges__locked_memory(native) : nothing;
	struct utsname kernel;
	char reason[128];

	if (memory.what)
		return memory;
	uname(&kernel);
	switch (-error) {
	case EPERM:
		return obstacle(xstrdup("the kernel does not allow loading the BPF program"),
				"run as root; in a container add CAP_BPF and CAP_PERFMON and allow "
				"the bpf system call");
	case EACCES:
	case EINVAL:
	case E2BIG:
	case ENOSYS:
		return follower(
			xasprintf("Linux %s rejects the BPF program (%s)", kernel.release,
				  strerror(-error)),
			"use Linux 5.10 or later without lockdown=confidentiality; -v shows "
			"the kernel's reasons");
	case ENOMEM:
		return short_of_memory("the BPF program and its maps");
	case ESRCH:
		/* libbpf returns this for any failure to read BTF. */
		return follower(xstrdup("the kernel's BTF (" BTF_PATH ") could not be read"),
				"-v shows why; if memory is short, " MEMORY_MENDS);
	default:
		/* libbpf has error numbers of its own. */
		libbpf_strerror(error, reason, sizeof(reason));
		return follower(xasprintf("the BPF program could not be loaded (%s)", reason),
				"-v shows the kernel's reasons, unless memory is short");
	}
}

static struct obstacle uncountable(const char *event)
{
	char *possible = events__countable();
	char *what = xasprintf("this machine cannot count %s; it can count %s", event, possible);

	free(possible);
	return obstacle(what,
			"choose one of these, or use a machine that does not hide the processor's "
			"counters, as many virtual ones do");
}

struct obstacle privileges__events(int error, const char *event)
{
	switch (-error) {
	case EPERM:
	case EACCES:
		if (event)
			return obstacle(xasprintf("the kernel does not allow sampling %s", event),
					"run as root, or with CAP_SYS_ADMIN; CAP_PERFMON is enough "
					"except for uprobes and USDT probes");
		return obstacle(xstrdup("the kernel does not allow perf events of other processes"),
				"run as root, or sysctl -w kernel.perf_event_paranoid=2; in a "
				"container allow the perf_event_open system call");
	case ENODEV:
	case ENOENT:
	case ENOSYS:
	case EOPNOTSUPP:
		if (event)
			return uncountable(event);
		return obstacle(xstrdup("this kernel has no CPU clock event"),
				"use a kernel with CONFIG_PERF_EVENTS=y, and no sandbox that hides "
				"the event, as gVisor does");
	case EINVAL:
		if (event)
			return obstacle(xasprintf("the kernel refuses this rate of %s", event),
					"use a lower one; kernel.perf_event_max_sample_rate is "
					"the limit");
		break;
	case EMFILE:
	case ENFILE:
		return obstacle(xasprintf("no room for perf events (%s)", strerror(-error)),
				"raise ulimit -n: each CPU needs one open file");
	case ENOMEM:
		return short_of_memory("perf events");
	}
	return follower(xasprintf("perf events could not be started (%s)", strerror(-error)),
			"please report it with the kernel's version");
}

struct obstacle privileges__interrupts(const char *reason)
{
	return obstacle(xasprintf("calls of this tracepoint in interrupts cannot be told apart: %s",
				  reason),
			KERNEL_SYMBOLS_MENDS "; syscalls:... and task:... need no symbols");
}

struct obstacle privileges__signals(int error)
{
	return obstacle(
		xasprintf("cannot read signals such as Ctrl-C (signalfd: %s)", strerror(-error)),
		limits__lack_files(error)
			? "raise ulimit -n"
			: "allow the system call signalfd4 in the container's seccomp "
			  "profile");
}

static uint64_t bit(int number)
{
	return (uint64_t)1 << number;
}

void privileges__drop(bool keep_probes, bool (*works)(const void *context), const void *context)
{
	uint64_t held = capabilities__effective(), kept = 0;
	int bpf = capability__find(capabilities__needed, held), error;

	reader__relieve();
	for (size_t i = 0; i < sizeof(to_write_as_root) / sizeof(to_write_as_root[0]); i++)
		kept |= held & bit(to_write_as_root[i]);
	for (const struct capability *needed = capabilities__needed; needed->name; needed++) {
		int number = capability__find(needed, held);

		if (needed->to_the_end && number >= 0)
			kept |= bit(number);
	}
	if (keep_probes)
		kept |= held & bit(CAP_SYS_ADMIN);
	error = capabilities__limit(kept, true);
	/* If kernel.unprivileged_bpf_disabled is set, older kernels require CAP_BPF even for using
	 * an open map. */
	if (!error && bpf >= 0 && !works(context))
		kept |= bit(bpf);
	if (!error)
		error = capabilities__limit(kept, false);
	if (!error && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		error = -errno;
	if (!error)
		error = system_calls__confine(NETWORK_REFUSED);
	if (error)
		log__warning("cannot drop privileges: %s", strerror(-error));
}
