// SPDX-License-Identifier: BSD-2-Clause
/* The names are those of CPython 2.7 to 3.15.  "*" stands for any bytes, or none. */
#include <fnmatch.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "unwind/plumbing.h"
#include "unwind/symbols.h"

/* Not plumbing, although a pattern matches. */
static const char *const exceptions[] = {
	"*_Calloc",
	"*_MiCalloc",
	"*_dealloc",
	"*_traverse",
};

static const char *const eval_loops[] = { "_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx" };

static const char *const stack_bases[] = { "_ZN8greenlet12UserGreenlet13g_initialstubEPv",
					   "g_initialstub" };

static const char *const patterns[] = {
	/* The eval loop and what enters it. */
	"PyEval_*",
	"_PyEval_*",
	"_PyEvalFrame*",
	"_TAIL_CALL_*",
	"py_trampoline_evaluator",

	/* Calls of functions and objects. */
	"*ectorcall*",
	"PyObject_*Call*",
	"_PyObject_*Call*",
	"_PyFunction_FastCall*",
	"PyCFunction_Call*",
	"_PyCFunction_FastCall*",
	"_PyMethodDef_RawFastCall*",
	"_PyMethodDescr_FastCall*",
	"function_call",
	"function_code_fastcall",
	"fast_function",
	"call_function",
	"do_call",
	"do_call_core",
	"ext_do_call",
	"object_vacall",
	"callmethod",
	"cfunction_*",
	"method_call",
	"methoddescr_call",
	"classmethoddescr_call",
	"instance_call",
	"instancemethod_call",
	"type_call",

	/* Special methods written in Python, and those of C called from Python. */
	"slot_tp_*",
	"slot_nb_*",
	"slot_sq_*",
	"slot_mp_*",
	"slot_am_*",
	"call_method",
	"call_maybe",
	"call_unbound",
	"call_unbound_noarg",
	"wrapper_call",
	"wrapperdescr_call",
	"wrapperdescr_raw_call",
	"wrap_*func*",
	"wrap_call",
	"wrap_descr_*",
	"wrap_init",
	"wrap_next",
	"tp_new_wrapper",

	/* Generators and coroutines. */
	"gen_send*",
	"gen_iternext",
	"gen_throw",
	"_gen_throw",
	"gen_close*",
	"PyIter_Send",
	"_PyGen_Send",
	"coro_wrapper_*",
	"async_gen_asend_*",
	"async_gen_athrow_*",

	/* The start of a program. */
	"_start",
	"main",
	"__libc_start_*",
	"libc_start_main_*",
	"Py_Main",
	"Py_RunMain",
	"Py_BytesMain",
	"pymain_*",
	"pyrun_*",
	"PyRun_*",
	"_PyRun_*",
	"run_mod",
	"run_eval_code_obj",

	/* The start of a thread. */
	"clone",
	"clone3",
	"__clone*",
	"start_thread",
	"pythread_wrapper",
	"t_bootstrap",
	"thread_run",
};

/* Whether NAME, without its compiler's suffixes, matches one of COUNT patterns. */
static bool is_one_of(const char *const *all, size_t count, const char *name)
{
	char *base = xstrndup(name, symbols__base_length(name));
	size_t i = 0;

	/* Most patterns begin with another letter: only a few are worth a call. */
	while (i < count && ((all[i][0] != '*' && all[i][0] != *name) || fnmatch(all[i], base, 0)))
		i++;
	free(base);
	return i < count;
}

bool plumbing__is_name(const char *name)
{
	return is_one_of(patterns, sizeof(patterns) / sizeof(patterns[0]), name) &&
	       !is_one_of(exceptions, sizeof(exceptions) / sizeof(exceptions[0]), name);
}

bool plumbing__is_eval_loop(const char *name)
{
	return is_one_of(eval_loops, sizeof(eval_loops) / sizeof(eval_loops[0]), name);
}

bool plumbing__is_stack_base(const char *name)
{
	return is_one_of(stack_bases, sizeof(stack_bases) / sizeof(stack_bases[0]), name);
}
