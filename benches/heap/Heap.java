// The programs of `benches/heap/main.rs`, for Java: trees, list, table, arrays, throw.
//
// java -XX:+UseSerialGC -Xms64m -Xmx64m -Xlog:gc benches/heap/Heap.java trees 18
//
// Prints: `result`, nanoseconds of processor time for each allocation and milliseconds in all, of the second of two runs in one process, so
// that they are those of compiled code; for `once`, which makes one run of the program behind it, nothing. For `throw`, nanoseconds for each throw from 1, 2, 4 and 10
// frames below its handler, and for each call that does not throw inside and outside of a `try`; with
// -XX:CompileCommand=dontinline,Heap.up the frames are there.
import java.lang.management.ManagementFactory;
import com.sun.management.OperatingSystemMXBean;

public class Heap {
    static final class Pair {
        Object a, b;

        Pair(Object a, Object b) {
            this.a = a;
            this.b = b;
        }
    }

    static Pair build(long depth) {
        if (depth == 0) return new Pair(null, null);
        Pair a = build(depth - 1);
        return new Pair(a, build(depth - 1));
    }

    static long count(Pair tree) {
        return tree.a == null ? 1 : 1 + count((Pair) tree.a) + count((Pair) tree.b);
    }

    static long trees(long most) {
        Pair kept = build(most);
        long nodes = 0;
        for (long depth = 4; depth <= most; depth += 2)
            for (long round = 0; round < 1L << (most - depth + 4); round++) nodes += count(build(depth));
        return nodes + count(kept);
    }

    static long list(long rounds) {
        Pair head = new Pair(null, null), tail = head;
        for (long step = 0; step < rounds; step++) {
            Pair next = new Pair(null, null);
            tail.a = next;
            tail = next;
            if (step >= 100_000) head = (Pair) head.a;
        }
        return rounds + 1;
    }

    static long table(long rounds) {
        Object[] slots = new Object[1 << 18];
        long state = 1;
        for (long round = 0; round < rounds; round++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
            slots[(int) (state & ((1 << 18) - 1))] = new Pair(null, null);
        }
        return rounds;
    }

    static long arrays(long rounds) {
        Object[] slots = new Object[256];
        long state = 1;
        for (long round = 0; round < rounds; round++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
            slots[(int) (state & 255)] = new double[2500];
        }
        return rounds;
    }

    static final class Thrown extends RuntimeException {
        // As cheap as Java allows: no stack trace.
        Thrown() { super(null, null, false, false); }
    }

    static final Thrown THROWN = new Thrown();
    static volatile long sink;

    static long up(long n, long frames) {
        if (frames > 0) return up(n, frames - 1) + 1;
        if ((n & 1) == 0) throw THROWN;
        return n;
    }

    static void guarded(long rounds, long frames, long odd) {
        long sum = 0;
        for (long n = 0; n < rounds; n++) {
            try {
                sum += up(2 * n | odd, frames);
            } catch (Thrown e) {
                sum += 1;
            }
        }
        sink = sum;
    }

    static void bare(long rounds, long frames, long odd) {
        long sum = 0;
        for (long n = 0; n < rounds; n++) sum += up(2 * n | odd, frames);
        sink = sum;
    }

    static long run(String program, long size) {
        switch (program) {
            case "trees": return trees(size);
            case "list": return list(size);
            case "table": return table(size);
            case "arrays": return arrays(size);
            default: throw new IllegalArgumentException(program);
        }
    }

    static double used(Runnable what) {
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long began = system.getProcessCpuTime();
        what.run();
        return system.getProcessCpuTime() - began;
    }

    static void thrown() {
        System.out.print("result");
        for (int round = 0; round < 3; round++) guarded(100_000, round, 0);
        for (long frames : new long[] {0, 1, 3, 9})
            System.out.printf(" %.1f", used(() -> guarded(3_000_000, frames, 0)) / 3e6);
        for (int round = 0; round < 3; round++) {
            guarded(10_000_000, 0, 1);
            bare(10_000_000, 0, 1);
        }
        System.out.printf(" %.2f", used(() -> guarded(100_000_000, 0, 1)) / 1e8);
        System.out.printf(" %.2f%n", used(() -> bare(100_000_000, 0, 1)) / 1e8);
    }

    public static void main(String[] words) {
        if (words[0].equals("throw")) {
            thrown();
            return;
        }
        if (words[0].equals("once")) {
            run(words[1], Long.parseLong(words[2]));
            return;
        }
        long size = Long.parseLong(words[1]);
        long made = run(words[0], size);
        double time = used(() -> run(words[0], size));
        // In one piece: the collector logs to the same place.
        System.out.println(String.format("result %.2f %.0f", time / made, time / 1e6));
    }
}
