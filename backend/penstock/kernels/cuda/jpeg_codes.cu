// Decodes the Huffman codes of baseline JPEGs to coefficients: ITU-T T.81, annexes C (code tables) and F.2 (decoding).
//
// A thread block decodes neighbouring subsequences of one image, one per thread. Its first threads repeat the last subsequences of the
// block before it, so that its other threads usually know where to begin before that block is done. The data are in shared memory: threads
// read words at scattered addresses, and a warp waits for its slowest read.

const int FULL = 64;
// A code table has an entry for each value of the next LOOKUP bits; 0 if they begin with no code of at most LOOKUP bits. The fields of an
// entry, from the lowest bits on: the length of the code plus that of the value after it (5 bits), the length of the value (4 bits), and
// the number of coefficients to advance (7 bits).
const int LONGEST = 16, SIZE = 5, STEPS = 9;
// An advance beyond the end of any block, and the first coefficient number that no run of zeros can reach.
const int ENDS_BLOCK = 127, FIRST_AFTER_RUNS = 80;
// An entry for several AC codes contains the number of bits of all of them and, from bit ALL_STEPS on, the number of coefficients that they
// advance. If the last of them ends the block, END is added, which can be told apart from the advance.
const int ALL_STEPS = 24, END = 128;
// The entry used for an invalid code: one bit that ends the block. A thread that is not synchronized yet has to go on somehow.
const uint32 INVALID = uint32(ENDS_BLOCK) << STEPS | 1;

__device__ inline uint32 entry_of(int symbol, int length, bool is_dc) {
    int size = is_dc ? symbol : symbol & 15, steps = is_dc ? 0 : symbol == 0 ? ENDS_BLOCK : (symbol >> 4) + 1;
    return uint32(steps << STEPS | size << SIZE | (length + size));
}

__device__ inline int length_of(uint32 entry) { return int(entry & 31) - int(entry >> SIZE & 15); }

// The entry of the code at the beginning of 16 bits, found by search; 0 if there is none of at least `shortest` bits.
__device__ inline uint32 searched(const CodeTable &table, int bits, int shortest, bool is_dc) {
    int length = shortest;
    for (int k = shortest; k <= LONGEST; k++) length += bits >= table.limits[k];
    if (length > LONGEST) return 0;
    return entry_of(table.symbols[(bits >> (LONGEST - length)) + table.offsets[length] & 255], length, is_dc);
}

// Fills a table from the number of codes of each length and the symbols; all threads of a block must call it.
__device__ inline void fill_table(CodeTable &table, const uint8 *codes, bool is_dc) {
    if (threadIdx.x < 256) table.symbols[threadIdx.x] = codes[LONGEST + threadIdx.x];
    if (threadIdx.x == 0) {
        int code = 0, known = 0;
        for (int length = 1; length <= LONGEST; length++) {
            table.offsets[length] = known - code;
            code += codes[length - 1], known += codes[length - 1];
            table.limits[length] = code << (LONGEST - length);
            code *= 2;
        }
    }
    __syncthreads();
    for (int value = threadIdx.x; value < 1 << LOOKUP; value += THREADS) {
        int bits = value << (LONGEST - LOOKUP);
        bool is_short = bits < table.limits[LOOKUP];
        table.entries[value] = uint16(is_short ? searched(table, bits, 1, is_dc) : 0);
    }
    int first = table.limits[LOOKUP], shift = 0;
    while ((1 << LONGEST) - first > LONGER << shift) shift++;
    if (threadIdx.x == 0) table.shift = shift;
    for (int k = threadIdx.x; k < LONGER; k += THREADS) {
        int bits = first + (k << shift);
        uint32 entry = bits < 1 << LONGEST ? searched(table, bits, LOOKUP + 1, is_dc) : 0;
        table.longer[k] = uint16(length_of(entry) <= LONGEST - shift ? entry : 0);
    }
}

__device__ inline uint32 swapped(uint32 word) {
    return word >> 24 | (word >> 8 & 0xFF00) | (word << 8 & 0xFF0000) | word << 24;
}

// Reads a string of bits; holds the current word and the next one.
struct Reader {
    const uint32 *words;
    uint32 current, next;
    int position, place;

    __device__ Reader(const uint32 *data, int start) : words(data), position(start), place((start >> 5) + 2) {
        current = words[place - 2], next = words[place - 1];
    }
    __device__ uint32 bits() const { return uint32((uint64(current) << 32 | next) << (position & 31) >> 32); }
    // The word after the next one. It is read before it is known whether it is needed, so that nothing has to wait for it.
    __device__ uint32 ahead() const { return words[place]; }
    // Skips fewer than 32 bits; `word` is what `ahead` returned.
    __device__ void skip(int count, uint32 word) {
        bool is_next = ((position & 31) + count) >> 5;
        position += count;
        current = is_next ? next : current;
        next = is_next ? word : next;
        place += is_next;
    }
};

__device__ inline uint32 entry_at(const CodeTable &table, uint32 bits, bool is_dc) {
    uint32 entry = table.entries[bits >> (32 - LOOKUP)];
    if (entry) return entry;
    int first = int(bits >> 16);
    entry = table.longer[(first - table.limits[LOOKUP]) >> table.shift];
    return entry ? entry : searched(table, first, LOOKUP + 1, is_dc);
}

// The kind of a block of a unit (MCU), packed into one number: the DC table in the lowest bits; then, each beginning at the bit named here,
// the AC table, the number of the next block, the number of this block, and the position of the component's sum among the packed sums of DC
// The number of bits of a packed sum. It cannot overflow within a subsequence, as each difference takes up as many bits of the data as it
// has, and also those of its code.
const int AC = 4, FOLLOWING = 8, PLACE = 12, SUM = 16;
// The number of bits of a packed sum. A subsequence cannot overflow it: each difference takes up its own bits and those of a code.
const int SUM_BITS = 21;

// The value after a code. If its first bit is 0, it is negative: the bits minus (2^size - 1).
__device__ inline int value_of(uint32 entry, uint32 bits) {
    int size = int(entry >> SIZE) & 15;
    uint32 rest = bits << length_of(entry);
    return int(rest >> 1 >> (31 - size)) + (int(rest) < 0 ? 0 : 1 - (1 << size));
}

// Where a path of blocks begins or ends: bits after the beginning of a subsequence, and the number of a block in its unit.
struct State {
    int beyond, place;
    __device__ bool operator!=(const State &other) const { return beyond != other.beyond || place != other.place; }
};

// The sums along a path: the number of blocks, and for each component the sum of the differences of DC coefficients.
struct Sums {
    int blocks, dc[MAX_COMPONENTS];
    __device__ void add(const Sums &other) {
        blocks += other.blocks;
        for (int c = 0; c < MAX_COMPONENTS; c++) dc[c] += other.dc[c];
    }
};

// A subsequence: bits `begin` to `end`. Its thread reads the blocks that begin there, the last of which may extend beyond `end`.
struct Subsequence {
    int begin, end;
    bool is_first;
    // The restart interval that contains the subsequence: its first block, the block after its last one, and the end of its bytes.
    int first_block, last_block, last_byte;
};

__device__ inline Subsequence subsequence_at(const JpegScan &p, int number) {
    const int *rows = reinterpret_cast<const int *>(p.intervals);
    int low = 0, high = p.interval_count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (rows[2 * middle] <= number) low = middle; else high = middle - 1;
    }
    int inside = number - rows[2 * low], begin = 8 * rows[2 * low + 1], last_byte = rows[2 * low + 3];
    Subsequence own;
    own.begin = begin + inside * SUBSEQUENCE;
    own.end = min(own.begin + SUBSEQUENCE, 8 * last_byte);
    own.is_first = inside == 0;
    own.first_block = low * p.interval_blocks;
    own.last_block = min(own.first_block + p.interval_blocks, p.blocks);
    own.last_byte = last_byte;
    return own;
}

// The state of a thread block's subsequences until their coefficients are written.
struct Work {
    int begins[THREADS], stops[THREADS];
    State starts[THREADS], ends[THREADS];
    Sums sums[THREADS];
    // The subsequences to follow in this round.
    int listed[THREADS];
    int partial[5 * THREADS];
    // For each code table, entries by the next SEVERAL bits. An entry of an AC table covers all codes that lie within these bits together
    // with their values.
    uint32 entries[CODE_TABLES][1 << SEVERAL];
};

__device__ inline void fill_entries(const CodeTable &table, bool is_dc, uint32 *entries) {
    const int values = 1 << SEVERAL;
    for (int value = threadIdx.x; value < values; value += THREADS) {
        int bits = 0, steps = 0, size = 0;
        while (bits < SEVERAL && steps < END) {
            // Codes that lie within the known bits do not depend on the zeros that follow these bits.
            uint32 entry = entry_at(table, uint32(value << bits & values - 1) << (32 - SEVERAL), is_dc);
            int more = int(entry >> STEPS);
            bool is_end = more == ENDS_BLOCK;
            if (!entry || bits + length_of(entry) > SEVERAL || (!is_end && steps + more >= FULL - 1)) break;
            bits += entry & 31, steps += is_end ? END : more;
            if (is_dc) {
                size = int(entry >> SIZE) & 15;
                break;
            }
        }
        entries[value] = uint32(steps) << ALL_STEPS | uint32(size << SIZE | bits);
    }
}

// Follows the blocks that begin in a subsequence without storing coefficients; sets the end and the sums of the subsequence. On a wrong
// path, an invalid code ends a block.
__device__ inline void follow(const Shared &shared, Work &work, int number) {
    int begin = work.begins[number], stop = work.stops[number];
    Reader reader(shared.words, begin + work.starts[number].beyond);
    int kind = shared.kinds[work.starts[number].place], table = kind & 3, reached = 0, blocks = 0;
    int64 differences = 0;
    bool begins = true;
    // There are few branches, as a branch that one thread takes holds up its whole warp.
    while (!begins || reader.position < stop) {
        uint32 bits = reader.bits(), ahead = reader.ahead();
        int following = shared.kinds[kind >> FOLLOWING & 15];
        uint32 entry = work.entries[table][bits >> (32 - SEVERAL)];
        int steps = int(entry >> ALL_STEPS);
        if (entry == 0 || (reached + steps) % END >= FULL - 1) {
            // The entry holds no code, or the block ends before the last code of the entry: take one code.
            entry = entry_at(shared.tables[table], bits, begins);
            entry = entry ? entry : INVALID;
            steps = int(entry >> STEPS);
        }
        int64 difference = int64(value_of(entry, bits)) << (kind >> SUM);
        differences += begins ? difference : 0;
        reader.skip(entry & 31, ahead);
        reached += steps;
        begins = reached >= FULL - 1;
        table = (begins ? following : kind >> AC) & 3;
        kind = begins ? following : kind;
        reached = begins ? 0 : reached;
        blocks += begins;
    }
    Sums sums = {blocks, {0, 0, 0}};
    for (int c = 0; c < MAX_COMPONENTS; c++) {
        sums.dc[c] = int(uint32(differences) << (32 - SUM_BITS)) >> (32 - SUM_BITS);
        differences = (differences - sums.dc[c]) >> SUM_BITS;
    }
    work.ends[number] = {reader.position - begin - SUBSEQUENCE, kind >> PLACE & 15};
    work.sums[number] = sums;
}

// Follows the subsequences of threads with `asks`; then, in rounds, each subsequence that does not begin where the one before it ends,
// until all do. Subsequences are listed first, so that they occupy few warps. Returns the number of rounds.
__device__ inline int synchronize(Shared &shared, Work &work, bool has_before, bool asks) {
    int number = threadIdx.x;
    for (int round = 0;; round++) {
        if (asks) work.listed[atomicAdd(&shared.counts[round & 1], 1)] = number;
        __syncthreads();
        int count = shared.counts[round & 1];
        if (number < count) follow(shared, work, work.listed[number]);
        if (number == 0) shared.counts[round + 1 & 1] = 0;
        __syncthreads();
        if (count == 0) return round;
        asks = has_before && work.ends[number - 1] != work.starts[number];
        if (asks) work.starts[number] = work.ends[number - 1];
    }
}

// Makes the thread block's first new subsequence (this thread's if `is_first`) begin where the thread block before it ended. If that
// changes its start, follows it and the subsequences after it again. Returns the number of rounds.
__device__ inline int join(Shared &shared, Work &work, bool is_first, bool has_before, const State &end) {
    bool asks = is_first && has_before && end != work.starts[threadIdx.x];
    if (asks) work.starts[threadIdx.x] = end;
    return synchronize(shared, work, has_before && !is_first, asks);
}

// Returns the sums over this thread's subsequence and all before it: from the beginning of its restart interval if the interval begins in
// this thread block (then sets `is_whole`), otherwise from the block's first new subsequence.
__device__ inline Sums summed(Work &work, const Subsequence &own, bool is_own, bool &is_whole) {
    Sums sums = work.sums[threadIdx.x];
    is_whole = own.is_first;
    if (is_whole) sums.blocks += own.first_block;
    for (int step = 1; step < OWN_SUBSEQUENCES; step *= 2) {
        int *mine = work.partial + threadIdx.x, other = int(threadIdx.x) - step;
        mine[0] = sums.blocks, mine[THREADS] = is_whole;
        for (int c = 0; c < MAX_COMPONENTS; c++) mine[(2 + c) * THREADS] = sums.dc[c];
        __syncthreads();
        if (is_own && !is_whole && other >= OVERLAP) {
            const int *from = work.partial + other;
            Sums before = {from[0], {from[2 * THREADS], from[3 * THREADS], from[4 * THREADS]}};
            sums.add(before);
            is_whole = from[THREADS];
        }
        __syncthreads();
    }
    return sums;
}

// The data that a thread block passes to the next one of the same image: where its last subsequence ends, the sums up to there, and the
// number of rounds made after waiting for the block before.
struct Link {
    State end;
    Sums sums;
    int late;
};

__device__ inline void wait_for(const volatile int *flag) {
    while (!*flag) {
    }
    __threadfence();
}

__device__ inline Link given_by(const volatile int *link) {
    wait_for(link);
    return {{link[1], link[2]}, {link[3], {link[4], link[5], link[6]}}, link[7]};
}

__device__ inline void pass_on(volatile int *link, const State &end, const Sums &sums, int late) {
    link[1] = end.beyond, link[2] = end.place, link[3] = sums.blocks;
    for (int c = 0; c < MAX_COMPONENTS; c++) link[4 + c] = sums.dc[c];
    link[7] = late;
    __threadfence();
    link[0] = 1;
}

// Returns a provisional end of the last subsequence of a block, which that block finds without waiting for others. It is usually right, so
// that all blocks can work at the same time.
__device__ inline State suggested_by(const volatile int *link) {
    wait_for(link + 8);
    return {link[9], link[10]};
}

__device__ inline void suggest(volatile int *link, const State &end) {
    link[9] = end.beyond, link[10] = end.place;
    __threadfence();
    link[8] = 1;
}

// Whether the values between the two passes of the transform fit into 16 bits; the same test as in kernels/cpu/jpeg/coefficients.py.
__device__ inline bool is_safe(const Pack<int16, 8> *rows, const uint16 *factors) {
    for (int column = 0; column < 8; column++) {
        int total = 0;
        for (int row = 0; row < 8; row++)
            total += abs(int(rows[row * THREADS].values[column])) * int(factors[8 * row + column]);
        if (total > SAFE_SUM) return false;
    }
    return true;
}

// Writes the blocks that begin in a subsequence; `before` holds the sums of all subsequences before it, `origin` is the position
// in the scan of the first word in shared memory. Returns flags of the problems found; -1 if the restart interval ends correctly in this
// subsequence.
__device__ inline int write(const Shared &shared, const JpegScan &p, const Subsequence &own, const State &start,
                            Sums before, int origin, Pack<int16, 8> *rows) {
    const uint16 *quantizers = reinterpret_cast<const uint16 *>(p.quantizers);
    const Pack<int16, 8> zeros = {{0, 0, 0, 0, 0, 0, 0, 0}};
    for (int row = 0; row < 8; row++) rows[row * THREADS] = zeros;
    if (before.blocks >= own.last_block) return 0;
    Reader reader(shared.words, own.begin - origin + start.beyond);
    int16 *values = reinterpret_cast<int16 *>(rows);
    int place = start.place, found = 0, stop = own.end - origin;
    while (reader.position < stop && before.blocks < own.last_block) {
        int kind = shared.kinds[place], part = (kind >> SUM) / SUM_BITS, dc = 0, reached = 0;
        const uint32 *factors = shared.factors + part * FULL;
        uint32 bits = reader.bits(), entry = entry_at(shared.tables[kind & 3], bits, true);
        if (!entry) return DAMAGED;
        int difference = value_of(entry, bits);
        for (int c = 0; c < MAX_COMPONENTS; c++) {
            before.dc[c] += c == part ? difference : 0;
            dc = c == part ? before.dc[c] : dc;
        }
        values[0] = int16(dc);
        int size = abs(int(int16(dc))) * int(factors[0] >> 16);
        reader.skip(entry & 31, reader.ahead());
        const CodeTable &table = shared.tables[kind >> AC & 3];
        while (reached < FULL - 1) {
            uint32 ahead = reader.ahead();
            bits = reader.bits(), entry = entry_at(table, bits, false);
            reached += entry >> STEPS;
            if (!entry || (reached >= FULL && reached < FIRST_AFTER_RUNS)) return DAMAGED;
            if (reached < FULL) {
                int value = value_of(entry, bits);
                uint32 factor = factors[reached];
                values[factor & 0xFFFF] = int16(value);
                size += abs(value) * int(factor >> 16);
            }
            reader.skip(entry & 31, ahead);
        }
        // The sum over all columns is faster to compute than `is_safe`, and usually small enough.
        if (size > SAFE_SUM && !is_safe(rows, quantizers + part * FULL)) found |= UNSAFE;
        Pack<int16, 8> *target = reinterpret_cast<Pack<int16, 8> *>(p.target) + int64(before.blocks) * 8;
        for (int row = 0; row < 8; row++) {
            target[row] = rows[row * THREADS];
            rows[row * THREADS] = zeros;
        }
        before.blocks++;
        place = kind >> FOLLOWING & 15;
    }
    if (found || before.blocks < own.last_block) return found;
    return (reader.position + origin + 7) / 8 == own.last_byte ? -1 : DAMAGED;
}

// Fills the shared memory of a thread block, with the data from bit `origin` to bit `stop`.
__device__ inline void fill_shared(Shared &shared, const JpegScan &p, int origin, int stop, const uint8 *zigzag) {
    const uint8 *codes = reinterpret_cast<const uint8 *>(p.codes);
    const uint16 *quantizers = reinterpret_cast<const uint16 *>(p.quantizers);
    const uint32 *words = reinterpret_cast<const uint32 *>(p.data) + origin / 32;
    int count = (stop - origin + 31) / 32 + BEYOND / 4;
    for (int k = threadIdx.x; k < count; k += THREADS) shared.words[k] = swapped(words[k]);
    for (int k = 0; k < CODE_TABLES; k++) fill_table(shared.tables[k], codes + k * CODES, k < CODE_TABLES / 2);
    if (threadIdx.x < MAX_COMPONENTS * FULL) {
        int place = zigzag[threadIdx.x % FULL], row = place / 8;
        uint32 factor = quantizers[threadIdx.x - threadIdx.x % FULL + place];
        shared.factors[threadIdx.x] = factor << 16 | uint32(row * THREADS * 8 + place % 8);
    }
    if (threadIdx.x < p.unit_blocks) {
        int part = p.parts >> 2 * threadIdx.x & 3, choices = p.choices >> 2 * part;
        int following = threadIdx.x + 1 == p.unit_blocks ? 0 : threadIdx.x + 1;
        int kind = (CODE_TABLES / 2 + (choices >> 1 & 1)) << AC | (choices & 1);
        shared.kinds[threadIdx.x] = kind | following << FOLLOWING | threadIdx.x << PLACE | part * SUM_BITS << SUM;
    }
    if (threadIdx.x == 0) shared.counts[0] = 0;
}

// A thread block takes its number when it starts to run. It waits only for blocks with lower numbers, which are running or done.
__global__ void __launch_bounds__(THREADS, 3)
read_codes(const int64 *__restrict__ first_blocks, const JpegScan *__restrict__ scans, int samples,
           const uint8 *__restrict__ zigzag, int *status, int *turns) {
    extern __shared__ __align__(16) uint8 memory[];
    __shared__ int turn;
    __shared__ Link given;
    Shared &shared = *reinterpret_cast<Shared *>(memory);
    Work &work = *reinterpret_cast<Work *>(shared.rows);
    static_assert(sizeof(Work) <= sizeof(shared.rows), "what is known has to fit where blocks are written later");
    if (threadIdx.x == 0) turn = atomicAdd(turns, 1);
    __syncthreads();
    int number = threadIdx.x, sample = sample_of(first_blocks, samples, turn);
    const JpegScan p = scans[sample];
    // When the host launches this kernel, the data may not be gathered yet, and it knows only an upper bound of the subsequences.
    int subsequences = reinterpret_cast<const int *>(p.intervals)[2 * p.interval_count];
    int block = turn - int(first_blocks[sample]), before = block * OWN_SUBSEQUENCES - OVERLAP, index = before + number;
    if (block * OWN_SUBSEQUENCES >= subsequences) return;
    bool is_active = index >= 0 && index < subsequences, is_own = is_active && number >= OVERLAP, is_whole;
    Subsequence own = subsequence_at(p, is_active ? index : 0);
    int origin = subsequence_at(p, max(before, 0)).begin & ~31;
    int stop = subsequence_at(p, min(before + THREADS, subsequences) - 1).end;
    fill_shared(shared, p, origin, stop, zigzag);
    __syncthreads();
    for (int k = 0; k < CODE_TABLES; k++) fill_entries(shared.tables[k], k < CODE_TABLES / 2, work.entries[k]);
    work.begins[number] = own.begin - origin, work.stops[number] = own.end - origin;
    work.starts[number] = {0, 0};
    __syncthreads();
    bool has_before = is_active && number > 0 && !own.is_first;
    synchronize(shared, work, has_before, is_active);
    int *link = reinterpret_cast<int *>(p.chain) + block * LINK, late = 0;
    bool is_first = number == OVERLAP, is_last = is_own && (number == THREADS - 1 || index == subsequences - 1);
    if (is_last) suggest(link, work.ends[number]);
    if (block > 0) {
        if (is_first) given.end = suggested_by(link - LINK);
        __syncthreads();
        join(shared, work, is_first, has_before, given.end);
    }
    Sums total = summed(work, own, is_own, is_whole);
    if (block > 0) {
        if (is_first) given = given_by(link - LINK);
        __syncthreads();
        late = given.late;
        int rounds = late < MOST_LATE ? join(shared, work, is_first, has_before, given.end) : 0;
        if (rounds) total = summed(work, own, is_own, is_whole);
        if (is_first && has_before && given.end != work.starts[number]) atomicOr(status + sample, LATE);
        late += rounds;
        if (!is_whole) total.add(given.sums);
    }
    if (is_last) pass_on(link, work.ends[number], total, late);
    State start = work.starts[number];
    for (int c = 0; c < MAX_COMPONENTS; c++) total.dc[c] -= work.sums[number].dc[c];
    total.blocks -= work.sums[number].blocks;
    __syncthreads();
    if (!is_own) return;
    int found = write(shared, p, own, start, total, origin, reinterpret_cast<Pack<int16, 8> *>(shared.rows) + number);
    if (found > 0) atomicOr(status + sample, found);
    if (found < 0) atomicAdd(status + sample, -1);
}
