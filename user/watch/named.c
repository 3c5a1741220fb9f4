// SPDX-License-Identifier: BSD-2-Clause
/*
 * To load what samples takes a tenth of a second, in which a process that was opened may execute
 * another program, end and leave its number to another one, or map a Python: all without a word,
 * for the kernel side tells only what becomes of what it knows.  So it is made known first, as what
 * waits, from where on all is told; then what was found is taken where the program is proved to be
 * the same, and else it is looked for from scratch.
 */
#include <errno.h>

#include "base/log.h"
#include "reading/process.h"
#include "watch/finding.h"
#include "watch/named.h"

enum exit_status named__open(pid_t pid, bool needed, bool *silent, struct named *named)
{
	enum exit_status status;
	const char *by;

	named->pid = pid;
	/* Before it is looked what that is.  What is wrong with it that look says. */
	program__identify(pid, &named->program);
	status = target__open(pid, needed, silent, &named->target);
	by = status || *silent ? NULL : process__stopped_by(pid);
	if (by)
		log__warning("process %d is stopped %s: it has no samples until it goes on", pid,
			     by);
	return status;
}

/* Has WATCHED sampled as what was opened. */
static int take_opened(struct watch *watch, struct named *named, struct watched *watched)
{
	struct target_process *target = named->target;
	int error = finding__put(watch, watched, target, &(uint64_t){ 0 });

	/* It is another program by now, of which the kernel side is about to tell. */
	if (error)
		return error == -ESTALE ? 0 : error;
	named->target = NULL;
	finding__take_target(watch, watched, target);
	finding__drop_ended(watch, watched);
	return 0;
}

int named__sample(struct watch *watch, struct named *named, int64_t now)
{
	uint64_t start_time = named->program.start_time;
	struct watched *watched;
	struct program program;
	int error = finding__watch(watch, named->pid, now, &watched);

	if (error)
		return error == -ESRCH ? 0 : error;
	target_map__await(watch->map, watched->key);
	error = program__identify(named->pid, &program);
	if (error == -ESRCH || (!error && start_time && program.start_time != start_time))
		finding__remove(watch, watched);
	else if (named->target && program__is_same(&program, &named->program))
		return take_opened(watch, named, watched);
	else
		finding__look_at(watch, watched, now);
	return 0;
}
