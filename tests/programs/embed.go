// SPDX-License-Identifier: BSD-2-Clause

// A Go program that embeds Python: embed SCRIPT runs the script.
package main

/*
#include <stdlib.h>
#include <Python.h>
*/
import "C"

import (
	"os"
	"runtime"
	"unsafe"
)

func main() {
	runtime.LockOSThread()
	source, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	text := C.CString(string(source))
	defer C.free(unsafe.Pointer(text))
	C.Py_InitializeEx(0)
	C.PyRun_SimpleStringFlags(text, nil)
}
