// SPDX-License-Identifier: BSD-2-Clause

/** A Java program that loads the library named by its argument and calls its run(). */
public class Host {
    static native void run();

    public static void main(String[] arguments) {
        System.load(arguments[0]);
        run();
    }
}
