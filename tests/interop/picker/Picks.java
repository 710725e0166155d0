package org.apache.paimon.mergetree.compact;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.paimon.CoreOptions;
import org.apache.paimon.compact.CompactResult;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryRowWriter;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.BucketedDvMaintainer;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.RecordLevelExpire;
import org.apache.paimon.manifest.FileSource;
import org.apache.paimon.mergetree.Levels;
import org.apache.paimon.mergetree.SortedRun;
import org.apache.paimon.options.Options;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.stats.SimpleStats;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataTypes;

/** Asks the real compaction manager of Java Paimon 2.0.0 what it would do on invented levels: a question per line. */
public final class Picks {

    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final JsonNode question;
    private final CoreOptions options;
    private final List<DataFileMeta> files = new ArrayList<>();
    private final ArrayNode steps = MAPPER.createArrayNode();
    private Object task;

    private Picks(JsonNode question) {
        this.question = question;
        Map<String, String> texts = new HashMap<>();
        question.get("options").fields().forEachRemaining(e -> texts.put(e.getKey(), e.getValue().asText()));
        texts.put("record-level.expire-time", "1000 s");
        texts.put("record-level.time-field", "t");
        this.options = new CoreOptions(Options.fromMap(texts));
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(MAPPER.writeValueAsString(new Picks(MAPPER.readTree(line)).answer()));
        }
    }

    private ObjectNode answer() throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        for (JsonNode f : question.get("files")) {
            files.add(file(f));
        }
        BucketedDvMaintainer vectors = options.deletionVectorsEnabled() ? vectors() : null;
        CompactStrategy strategy = strategy();
        MergeTreeCompactManager manager =
                new MergeTreeCompactManager(
                        new Captured(),
                        new Levels(Picks::compare, files, options.numLevels()),
                        strategy,
                        Picks::compare,
                        options.compactionFileSize(true),
                        options.numSortedRunStopTrigger(),
                        rewriter(vectors),
                        null,
                        vectors,
                        true,
                        options.needLookup(),
                        question.path("expired").isEmpty() ? null : expiry(),
                        options.forceRewriteAllFiles(),
                        options.isChainTable(),
                        "");
        setHour(question.path("hour").asInt(12));
        ObjectNode out = MAPPER.createObjectNode();
        out.put("waits", manager.shouldWaitForLatestCompaction());
        manager.triggerCompaction(question.get("question").asText().equals("full"));
        manager.getCompactionResult(true);
        if (task != null) {
            ObjectNode choice = out.putObject("choice");
            choice.put("output", (int) get(task, "outputLevel"));
            choice.put("dropDeletes", (boolean) get(task, "dropDelete"));
            choice.put("rewriteAll", task instanceof FileRewriteCompactTask);
            ArrayNode names = choice.putArray("files");
            chosen().stream().map(DataFileMeta::fileName).sorted().forEach(names::add);
        }
        out.set("steps", steps);
        state(out, strategy);
        return out;
    }

    // ------------------------------------------------------------------ what the manager needs

    private static int compare(org.apache.paimon.data.InternalRow a, org.apache.paimon.data.InternalRow b) {
        return Integer.compare(a.getInt(0), b.getInt(0));
    }

    private DataFileMeta file(JsonNode f) {
        String name = f.get("name").asText();
        boolean expired = false;
        for (JsonNode n : question.path("expired")) {
            expired |= n.asText().equals(name);
        }
        BinaryRow times = new BinaryRow(2);
        BinaryRowWriter writer = new BinaryRowWriter(times);
        writer.writeInt(0, 0);
        writer.writeInt(1, expired ? 0 : Integer.MAX_VALUE);
        writer.complete();
        SimpleStats none = SimpleStats.EMPTY_STATS;
        return DataFileMeta.create(
                name,
                f.get("size").asLong(),
                1,
                BinaryRow.singleColumn(f.get("low").asInt()),
                BinaryRow.singleColumn(f.get("high").asInt()),
                none,
                new SimpleStats(times, times, none.nullCounts()),
                f.get("newest").asLong(),
                f.get("newest").asLong(),
                0,
                f.get("level").asInt(),
                Collections.emptyList(),
                Timestamp.fromEpochMillis(f.get("created").asLong()),
                f.get("deletes").isNull() ? null : f.get("deletes").asLong(),
                null,
                FileSource.APPEND,
                null,
                null,
                null,
                null);
    }

    private RecordLevelExpire expiry() {
        TableSchema schema =
                new TableSchema(
                        0,
                        Arrays.asList(new DataField(0, "k", DataTypes.INT()), new DataField(1, "t", DataTypes.INT())),
                        1,
                        Collections.emptyList(),
                        Collections.singletonList("k"),
                        Collections.emptyMap(),
                        "");
        return RecordLevelExpire.create(options, schema, null);
    }

    private BucketedDvMaintainer vectors() throws Exception {
        BucketedDvMaintainer made = allocate(BucketedDvMaintainer.class);
        Map<String, DeletionVector> vectors = new HashMap<>();
        for (JsonNode name : question.path("deleted")) {
            vectors.put(name.asText(), new BitmapDeletionVector());
        }
        set(made, "deletionVectors", vectors);
        return made;
    }

    private CompactStrategy strategy() throws Exception {
        Method create =
                MergeTreeCompactManagerFactory.class.getDeclaredMethod("createCompactStrategy", CoreOptions.class, List.class);
        create.setAccessible(true);
        CompactStrategy strategy = (CompactStrategy) create.invoke(allocate(MergeTreeCompactManagerFactory.class), options, files);
        Object universal = universal(strategy);
        Object early = get(universal, "earlyFullCompact");
        if (early != null) {
            JsonNode last = question.path("last");
            set(universal, "earlyFullCompact", new Early(early, question.path("now").asLong(),
                    last.isNumber() ? Long.valueOf(last.asLong()) : (Long) get(early, "lastFullCompaction")));
        }
        if (strategy instanceof ForceUpLevel0Compaction && get(strategy, "compactTriggerCount") != null) {
            ((AtomicInteger) get(strategy, "compactTriggerCount")).set(question.path("tries").asInt());
        }
        return strategy;
    }

    private static Object universal(CompactStrategy strategy) throws Exception {
        return strategy instanceof ForceUpLevel0Compaction ? get(strategy, "universal") : strategy;
    }

    private void state(ObjectNode out, CompactStrategy strategy) throws Exception {
        Object early = get(universal(strategy), "earlyFullCompact");
        if (early != null) {
            out.put("last", (Long) get(EarlyFullCompaction.class, early, "lastFullCompaction"));
        }
        if (strategy instanceof ForceUpLevel0Compaction && get(strategy, "compactTriggerCount") != null) {
            out.put("tries", ((AtomicInteger) get(strategy, "compactTriggerCount")).get());
        }
    }

    private CompactRewriter rewriter(BucketedDvMaintainer vectors) {
        boolean ownChangelog = options.changelogProducer() == CoreOptions.ChangelogProducer.FULL_COMPACTION;
        return options.needLookup() && !ownChangelog ? new Looking(vectors) : new Plain();
    }

    private void rewritten(List<List<SortedRun>> sections, boolean dropDelete, boolean lookup) {
        ObjectNode step = steps.addObject();
        step.put("do", "rewrite");
        step.put("dropDeletes", dropDelete);
        step.put("lookup", lookup);
        ArrayNode all = step.putArray("sections");
        for (List<SortedRun> section : sections) {
            List<String> names = new ArrayList<>();
            section.forEach(run -> run.files().forEach(f -> names.add(f.fileName())));
            Collections.sort(names);
            ArrayNode one = all.addArray();
            names.forEach(one::add);
        }
        step.put("runs", sections.stream().mapToInt(List::size).sum());
    }

    private void upgraded(DataFileMeta file, boolean lookup) {
        steps.addObject().put("do", "upgrade").put("file", file.fileName()).put("lookup", lookup);
    }

    @SuppressWarnings("unchecked")
    private List<DataFileMeta> chosen() throws Exception {
        if (task instanceof FileRewriteCompactTask) {
            return (List<DataFileMeta>) get(task, "files");
        }
        List<DataFileMeta> all = new ArrayList<>();
        ((List<List<SortedRun>>) get(task, "partitioned")).forEach(s -> s.forEach(r -> all.addAll(r.files())));
        return all;
    }

    /** Writes down what it is told to do. */
    private final class Plain implements CompactRewriter {
        @Override
        public CompactResult rewrite(int outputLevel, boolean dropDelete, List<List<SortedRun>> sections) {
            rewritten(sections, dropDelete, false);
            return new CompactResult();
        }

        @Override
        public CompactResult upgrade(int outputLevel, DataFileMeta file) {
            upgraded(file, false);
            return new CompactResult();
        }

        @Override
        public void close() {}
    }

    /** The same, with the rules of the rewriter that looks up. */
    private final class Looking extends LookupMergeTreeCompactRewriter<Object> {
        private final boolean vectors;

        Looking(BucketedDvMaintainer vectors) {
            super(options.numLevels() - 1, options.mergeEngine(), null, null, null, null, null, null, null, null, false, vectors, options, null);
            this.vectors = vectors != null;
        }

        @Override
        public CompactResult rewrite(int outputLevel, boolean dropDelete, List<List<SortedRun>> sections) {
            rewritten(sections, dropDelete, rewriteChangelog(outputLevel, dropDelete, sections));
            return new CompactResult();
        }

        @Override
        public CompactResult upgrade(int outputLevel, DataFileMeta file) {
            UpgradeStrategy strategy = upgradeStrategy(outputLevel, file);
            if (strategy == UpgradeStrategy.CHANGELOG_WITH_REWRITE) {
                rewritten(Collections.singletonList(Collections.singletonList(SortedRun.fromSingle(file))), vectors, true);
            } else {
                upgraded(file, strategy == UpgradeStrategy.CHANGELOG_NO_REWRITE);
            }
            return new CompactResult();
        }
    }

    /** Early full compaction at a given time. */
    private static final class Early extends EarlyFullCompaction {
        private final long now;

        Early(Object like, long now, Long last) throws Exception {
            super((Long) get(like, "fullCompactionInterval"), (Long) get(like, "totalSizeThreshold"),
                    (Long) get(like, "incrementalSizeThreshold"), last);
            this.now = now;
        }

        @Override
        long currentTimeMillis() {
            return now;
        }
    }

    /** Runs tasks at once. */
    private final class Captured extends AbstractExecutorService {
        @Override
        public <T> Future<T> submit(Callable<T> work) {
            task = work;
            FutureTask<T> future = new FutureTask<>(work);
            future.run();
            return future;
        }

        @Override
        public void execute(Runnable work) {
            work.run();
        }

        @Override
        public void shutdown() {}

        @Override
        public List<Runnable> shutdownNow() {
            return Collections.emptyList();
        }

        @Override
        public boolean isShutdown() {
            return false;
        }

        @Override
        public boolean isTerminated() {
            return false;
        }

        @Override
        public boolean awaitTermination(long time, TimeUnit unit) {
            return true;
        }
    }

    // ------------------------------------------------------------------ reflection

    /** Lets the local time lie in the middle of an hour. */
    private static void setHour(int hour) {
        int minutes = hour * 60 + 30 - LocalTime.now(ZoneOffset.UTC).toSecondOfDay() / 60;
        minutes = Math.floorMod(minutes + 720, 1440) - 720;
        String text = String.format("GMT%s%02d:%02d", minutes < 0 ? "-" : "+", Math.abs(minutes) / 60, Math.abs(minutes) % 60);
        TimeZone.setDefault(TimeZone.getTimeZone(text));
    }

    @SuppressWarnings("unchecked")
    private static <T> T allocate(Class<T> type) throws Exception {
        Constructor<?> object = Object.class.getDeclaredConstructor();
        Object factory = Class.forName("sun.reflect.ReflectionFactory").getMethod("getReflectionFactory").invoke(null);
        Method make = factory.getClass().getMethod("newConstructorForSerialization", Class.class, Constructor.class);
        return (T) ((Constructor<?>) make.invoke(factory, type, object)).newInstance();
    }

    private static Object get(Object owner, String name) throws Exception {
        return get(owner.getClass(), owner, name);
    }

    private static Object get(Class<?> type, Object owner, String name) throws Exception {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private static void set(Object owner, String name, Object value) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        field.set(owner, value);
    }
}
