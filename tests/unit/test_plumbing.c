// SPDX-License-Identifier: BSD-2-Clause
/* Which functions of CPython are plumbing, and which are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "unwind/plumbing.h"

static void test_plumbing(void **state)
{
	static const char *const names[] = {
		"_PyEval_EvalFrameDefault",
		"_PyEval_EvalFrameDefault.cold",
		"_PyEval_Vector",
		"PyEval_EvalFrameEx",
		"PyEval_EvalCode",
		"_PyEval_EvalCodeWithName.constprop.0",
		"_PyEvalFramePushAndInit.lto_priv.0",
		"_TAIL_CALL_CALL_PY_EXACT_ARGS.llvm.1234567890",
		"py_trampoline_evaluator",
		"_PyFunction_Vectorcall",
		"function_code_fastcall",
		"fast_function",
		"call_function",
		"call_function.lto_priv.0",
		"_PyFunction_FastCallDict",
		"PyObject_Call",
		"PyObject_CallMethodObjArgs",
		"_PyObject_MakeTpCall",
		"_PyObject_Call_Prepend",
		"PyObject_Vectorcall",
		"vectorcall_method",
		"method_vectorcall_FASTCALL_KEYWORDS",
		"_PyVectorcall_Call",
		"cfunction_call",
		"cfunction_vectorcall_FASTCALL",
		"_PyCFunction_FastCallKeywords",
		"_PyMethodDef_RawFastCallKeywords",
		"_PyMethodDescr_FastCallKeywords",
		"PyCFunction_Call",
		"method_call",
		"instancemethod_call",
		"slot_tp_call",
		"slot_nb_add",
		"slot_sq_item",
		"slot_mp_subscript",
		"type_call",
		"function_call",
		"gen_send_ex",
		"gen_send_ex2",
		"gen_iternext",
		"gen_send",
		"coro_wrapper_send",
		"wrap_binaryfunc_l",
		"Py_RunMain",
		"Py_Main",
		"Py_BytesMain",
		"pymain_run_python.constprop.0",
		"run_mod",
		"run_eval_code_obj",
		"pyrun_file",
		"PyRun_AnyFileObject",
		"_PyRun_SimpleFileObject",
		"main",
		"_start",
		"__libc_start_main",
		"__libc_start_call_main",
		"thread_run",
		"pythread_wrapper",
		"t_bootstrap",
		"start_thread",
		"clone",
		"clone3",
		"__clone_internal",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!plumbing__is_name(names[i]))
			fail_msg("%s is no plumbing", names[i]);
}

static void test_other_functions(void **state)
{
	static const char *const names[] = {
		"",
		"list_sort",
		"list_sort.cold",
		"PyObject_GetAttr",
		"PyDict_GetItem",
		"_PyEva",
		"PyEval",
		"xPyEval_EvalCode",
		"unicode_compare",
		"main_loop",
		"domain",
		"_start_here",
		"clone_list",
		"gc_collect",
		"wrap_strftime",
		"call_function_name",
		"builtin_sorted",
		"PyObject_Calloc",
		"_PyObject_MiCalloc",
		"coro_wrapper_dealloc",
		"coro_wrapper_traverse",
		"run_mod2",
		"take_gil",
		"gen_dealloc",
		"start_threads",
		"method_dealloc",
		"type_call_inner",
		"long_add",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (plumbing__is_name(names[i]))
			fail_msg("%s is plumbing", names[i]);
}

static void test_eval_loop(void **state)
{
	(void)state;
	assert_true(plumbing__is_eval_loop("_PyEval_EvalFrameDefault"));
	assert_true(plumbing__is_eval_loop("_PyEval_EvalFrameDefault.cold"));
	assert_true(plumbing__is_eval_loop("_PyEval_EvalFrameDefault.part.0.cold.1"));
	assert_true(plumbing__is_eval_loop("PyEval_EvalFrameEx"));
	assert_true(plumbing__is_eval_loop("PyEval_EvalFrameEx.part.2"));
	assert_false(plumbing__is_eval_loop("PyEval_EvalFrame"));
	assert_false(plumbing__is_eval_loop("_PyEval_EvalFrameDefault2"));
	assert_false(plumbing__is_eval_loop("_PyEval_EvalFrameDefault.other"));
	assert_false(plumbing__is_eval_loop("_PyEval_Vector"));
	assert_false(plumbing__is_eval_loop("_TAIL_CALL_CALL"));
	assert_false(plumbing__is_eval_loop(""));
}

static void test_stack_base(void **state)
{
	(void)state;
	assert_true(plumbing__is_stack_base("_ZN8greenlet12UserGreenlet13g_initialstubEPv"));
	assert_true(plumbing__is_stack_base("_ZN8greenlet12UserGreenlet13g_initialstubEPv.cold"));
	assert_true(plumbing__is_stack_base("g_initialstub"));
	assert_true(plumbing__is_stack_base("g_initialstub.isra.0.cold.12"));
	assert_false(plumbing__is_stack_base("_ZN8greenlet12UserGreenlet8g_switchEv"));
	assert_false(plumbing__is_stack_base("g_initialstub_failure"));
	assert_false(plumbing__is_stack_base(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plumbing),
		cmocka_unit_test(test_other_functions),
		cmocka_unit_test(test_eval_loop),
		cmocka_unit_test(test_stack_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
