// SPDX-License-Identifier: BSD-2-Clause
/* A stand-in's objects: strings of every kind, line tables, code objects and threads' copies. */
#include "interpreter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 64 /* characters */

/* Line I of a code object has instruction I: one entry each, of one code unit, without columns. */
#define ENTRY_ONE_UNIT	 0xe8
#define SAME_LINE	 0
#define NEXT_LINE	 2
#define LINE_TABLE_BYTES (2 * INSTRUCTIONS)

PyTypeObject PyType_Type = { PyVarObject_HEAD_INIT(&PyType_Type, 0) };
PyTypeObject PyCode_Type = { PyVarObject_HEAD_INIT(&PyType_Type, 0) };
PyTypeObject PyUnicode_Type = { PyVarObject_HEAD_INIT(&PyType_Type, 0) };
PyTypeObject PyBytes_Type = { PyVarObject_HEAD_INIT(&PyType_Type, 0) };
PyObject _Py_NoneStruct;

/* Names of each kind, with the first and the last characters of that kind. */
const char *const names[FUNCTIONS] = {
	"module",
	"caf\u00e9",
	"\u00a1\u00ff",
	"\u0444\u0443\u043d\u043a",
	"\u0100\uffda",
	"\U0001d4bb\U0001d4c3",
	"a\u00e9\u0444\U00010000\U0010fffd",
	"leaf",
};

PyCodeObject *codes[FUNCTIONS];
static char *copies[FUNCTIONS][THREADS];

static void *allocate_for_good(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (!memory)
		abort();
	return memory;
}

void *(*allocate)(size_t bytes) = allocate_for_good;

PyObject *new_str(const void *data, size_t length, unsigned int kind, int ascii)
{
	size_t header = ascii ? sizeof(PyASCIIObject) : sizeof(PyCompactUnicodeObject);
	PyASCIIObject *str = allocate(header + (length + 1) * kind);

	((PyObject *)str)->ob_type = &PyUnicode_Type;
	str->length = length;
	str->hash = -1;
	str->state.interned = 1;
	str->state.kind = kind;
	str->state.compact = 1;
	str->state.ascii = ascii;
	memcpy((char *)str + header, data, length * kind);
	return (PyObject *)str;
}

/* The first character of TEXT, which is UTF-8; *BYTES is its length. */
static Py_UCS4 first_character(const unsigned char *text, int *bytes)
{
	Py_UCS4 character;

	*bytes = text[0] < 0x80 ? 1 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	character = *bytes == 1 ? text[0] : text[0] & (0x7f >> *bytes);
	for (int i = 1; i < *bytes; i++)
		character = character << 6 | (text[i] & 0x3f);
	return character;
}

PyObject *new_text(const char *utf8)
{
	Py_UCS4 characters[TEXT_MAX], highest = 0;
	unsigned char data[TEXT_MAX * sizeof(Py_UCS4)];
	unsigned int length = 0, kind;
	int bytes;

	for (; *utf8; utf8 += bytes) {
		if (length == TEXT_MAX)
			abort();
		characters[length] = first_character((const unsigned char *)utf8, &bytes);
		if (characters[length] > highest)
			highest = characters[length];
		length++;
	}
	kind = highest < 0x100 ? 1 : highest < 0x10000 ? 2 : 4;
	/* Little-endian: the lower bytes come first. */
	for (unsigned int i = 0; i < length; i++)
		memcpy(data + i * kind, &characters[i], kind);
	return new_str(data, length, kind, highest < 0x80);
}

static PyObject *new_line_table(void)
{
	PyBytesObject *bytes = allocate(sizeof(*bytes) + LINE_TABLE_BYTES);

	((PyObject *)bytes)->ob_type = &PyBytes_Type;
	((PyVarObject *)bytes)->ob_size = LINE_TABLE_BYTES;
	for (int i = 0; i < INSTRUCTIONS; i++) {
		bytes->ob_sval[2 * i] = (char)ENTRY_ONE_UNIT;
		bytes->ob_sval[2 * i + 1] = i ? NEXT_LINE : SAME_LINE;
	}
	return (PyObject *)bytes;
}

#if HAS_COPIES
/* Copies for the threads, except the first, are allocated separately, one after another. */
static void make_copies(int function, PyCodeObject *code, int moved)
{
	code->co_tlbc = allocate(sizeof(_PyCodeArray) + THREADS * sizeof(char *));
	code->co_tlbc->size = THREADS;
	code->co_tlbc->entries[0] = copies[function][0];
	for (int i = 1; i < THREADS; i++) {
		copies[function][i] =
			(char *)((_Py_CODEUNIT *)allocate(2 * INSTRUCTIONS * sizeof(_Py_CODEUNIT)) +
				 moved);
		if (i != THREAD_WITHOUT || function != FUNCTION_WITHOUT)
			code->co_tlbc->entries[i] = copies[function][i];
	}
}
#endif

/* As in the interpreter, its strings are made first. */
void make_code_as(int function, const struct description *as)
{
	static uint32_t version;
	PyObject *line_table = new_line_table(), *name = new_text(as->name), *file;
	PyCodeObject *code;
	char filename[FILENAME_BYTES];

	snprintf(filename, sizeof(filename), FILENAME, as->name);
	file = new_text(filename);
	code = allocate(sizeof(*code) + (INSTRUCTIONS + 1) * sizeof(_Py_CODEUNIT));
	((PyObject *)code)->ob_type = &PyCode_Type;
#ifdef Py_GIL_DISABLED
	((PyObject *)code)->ob_ref_local = 1;
#else
	((PyObject *)code)->ob_refcnt = 1;
#endif
	((PyVarObject *)code)->ob_size = INSTRUCTIONS;
	code->co_version = ++version;
	code->co_firstlineno = as->first_line;
	code->co_filename = file;
	code->co_name = new_text("not the qualified one");
	code->co_qualname = name;
	code->co_linetable = line_table;
	codes[function] = code;
	copies[function][0] = code->co_code_adaptive;
#if HAS_COPIES
	make_copies(function, code, as->moved);
#endif
}

void drop_code(int function)
{
#ifdef Py_GIL_DISABLED
	((PyObject *)codes[function])->ob_ref_local = 0;
#else
	((PyObject *)codes[function])->ob_refcnt = 0;
#endif
#if PY_VERSION_HEX >= 0x030e0000
	_PyRuntime._main_interpreter._code_object_generation++;
#endif
}

void make_code(int function)
{
	const struct description as = { names[function], FIRST_LINE(function), COPY_MOVED };

	make_code_as(function, &as);
}

_Py_CODEUNIT *instruction(const struct thread *thread, int function, int position)
{
	return (_Py_CODEUNIT *)copies[function][HAS_COPIES ? thread->index : 0] + position;
}

void move_copies(int index)
{
#if HAS_COPIES
	for (int i = 0; i < FUNCTIONS; i++) {
		copies[i][index] -= COPY_MOVED * sizeof(_Py_CODEUNIT);
		codes[i]->co_tlbc->entries[index] = copies[i][index];
	}
#endif
}

int has_copy(int index, int function)
{
#if HAS_COPIES
	return codes[function]->co_tlbc->entries[index] != NULL;
#else
	return 1;
#endif
}

void complete_copies(void)
{
#if HAS_COPIES
	codes[FUNCTION_WITHOUT]->co_tlbc->entries[THREAD_WITHOUT] =
		copies[FUNCTION_WITHOUT][THREAD_WITHOUT];
#endif
}
