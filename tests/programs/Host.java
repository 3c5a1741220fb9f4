// SPDX-License-Identifier: BSD-2-Clause

/** A Java program that loads the library it is given and hands over to it. */
public class Host {
    static native void run();

    public static void main(String[] arguments) {
        System.load(arguments[0]);
        run();
    }
}
