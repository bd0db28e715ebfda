// The programs of `crates/runtime/benches/heap.rs`, for Java: trees, list, table, survive, throw.
//
// java -XX:+UseSerialGC -Xms64m -Xmx64m benches/heap/Heap.java PROGRAM
//
// Prints: program, nanoseconds of processor time for each allocation (or throw), collections and milliseconds of pauses, of the second
// of two runs in one process, so that they are those of compiled code.
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import com.sun.management.OperatingSystemMXBean;

public class Heap {
    static final int DEPTH = 18, QUEUE = 100_000, SLOTS = 1 << 18, CHURN = 20_000_000;

    static final class Pair {
        Object a, b;
    }

    static Pair build(int depth) {
        Pair pair = new Pair();
        if (depth > 0) {
            pair.a = build(depth - 1);
            pair.b = build(depth - 1);
        }
        return pair;
    }

    static long count(Pair tree) {
        return tree.a == null ? 1 : 1 + count((Pair) tree.a) + count((Pair) tree.b);
    }

    static long trees() {
        Pair kept = build(DEPTH);
        long all = (2L << DEPTH) - 1;
        for (int depth = 4; depth <= DEPTH; depth += 2)
            for (int round = 0; round < 1 << (DEPTH - depth + 4); round++) all += count(build(depth));
        if (count(kept) != (2L << DEPTH) - 1) throw new AssertionError();
        return all;
    }

    static long list() {
        Pair head = new Pair(), tail = head;
        for (int step = 0; step < CHURN; step++) {
            Pair next = new Pair();
            tail.a = next;
            tail = next;
            if (step >= QUEUE) head = (Pair) head.a;
        }
        return CHURN + 1L;
    }

    static long table(long rounds) {
        Object[] table = new Object[SLOTS];
        long state = 1;
        for (long round = 0; round < rounds; round++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
            table[(int) (state & (SLOTS - 1))] = new Pair();
        }
        return rounds;
    }

    static final class Thrown extends RuntimeException {
        // As cheap as Java allows: no stack trace.
        Thrown() { super(null, null, false, false); }
    }

    static final Thrown THROWN = new Thrown();
    static volatile long sink;

    static long up(long n) {
        if (n % 2 == 0) throw THROWN;
        return n;
    }

    static long thrown() {
        long sum = 0;
        for (long n = 0; n < 20_000_000; n++) {
            try {
                sum += up(n & ~1L);
            } catch (Thrown e) {
                sum += 1;
            }
        }
        sink = sum;
        return 20_000_000;
    }

    static long run(String program) {
        switch (program) {
            case "trees": return trees();
            case "list": return list();
            case "table": return table(CHURN);
            case "survive": return table(4_000_000);
            case "throw": return thrown();
            default: throw new IllegalArgumentException(program);
        }
    }

    public static void main(String[] args) {
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long began = 0, count = 0, pauses = 0, collections = 0;
        for (int round = 0; round < 2; round++) {
            pauses = collections = 0;
            for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
                pauses -= bean.getCollectionTime();
                collections -= bean.getCollectionCount();
            }
            began = system.getProcessCpuTime();
            count = run(args[0]);
        }
        double time = system.getProcessCpuTime() - began;
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            pauses += bean.getCollectionTime();
            collections += bean.getCollectionCount();
        }
        System.out.printf("%s %.2f %d %d%n", args[0], time / count, collections, pauses);
    }
}
