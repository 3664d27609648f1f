"""DISKSPD command lines, what DISKSPD does with each by its own source (CmdLineParser.cpp,
Common.cpp and IORequestGenerator.cpp of 2.2), and the fio options, or the refusal."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from iopstui.errors import UsageError
from iopstui.features.diskspd.run import translate
from iopstui.model.fio.jobfile import effective_sections

Given = Mapping[str, str | None]

DONE: list[tuple[str, str, Given]] = [
    # -- the area: both -B and -f are offsets from the target's beginning
    ("-B16M -f32M x", "I/O between 16 and 32 MiB", {"offset": "16m", "size": "16m"}),
    ("-f32M -B16M x", "the same in any order", {"offset": "16m", "size": "16m"}),
    ("-B16M:16M x", "base and length: the same", {"offset": "16m", "size": "16m"}),
    ("-B0:1G x", "from the beginning", {"offset": None, "size": "1g"}),
    ("-B0 x", "the whole target", {"offset": None, "size": None}),
    ("-B512M x", "from there to the end", {"offset": "512m", "size": None}),
    ("-c1G -B512M x", "the second half of the file", {"offset": "512m", "size": "512m"}),
    ("-c1G -f256M x", "the first quarter", {"offset": None, "size": "256m"}),
    ("-c1G -f2G x", "a warning; the file ends before -f", {"size": "1g"}),
    ("-c1G -B256M -f512M x", "the second quarter", {"offset": "256m", "size": "256m"}),
    ("-c1G -B768M:1G x", "cut off at the file's end", {"offset": "768m", "size": "256m"}),
    ("-b8K -B2b:4b x", "sizes in blocks", {"offset": "16k", "size": "32k"}),
    ("-c8192B -b4K x", "B is a block, too, also before -b", {"size": "32m", "bs": "4k"}),
    # -- random I/O draws every offset anew
    ("-r x", "aligned to blocks", {"rw": "randread", "norandommap": "1", "blockalign": None}),
    ("-r4K -b8K x", "aligned to 4 KiB", {"norandommap": "1", "blockalign": "4k"}),
    ("-r8K -b4K x", "every other block", {"blockalign": "8k", "bs": "4k"}),
    ("-rs40 x", "40 % random", {"percentage_random": "40", "norandommap": "1"}),
    ("-rs40 -r8K -b4K x", "and these aligned", {"percentage_random": "40", "blockalign": "8k"}),
    ("-r8K -rs40 -b4K x", "in any order", {"percentage_random": "40", "blockalign": "8k"}),
    ("-rs100 x", "all random, as -r", {"rw": "randread", "percentage_random": None}),
    ("-s x", "sequential", {"rw": "read", "norandommap": None}),
    ("-s256K -b64K x", "a block, then 192 KiB left out", {"rw": "read:196608"}),
    # -- distributions: IO% / part of the target
    ("-r -rdpct90/10:0/10:5/20 x", "the rest of the I/O goes to the rest of the target",
     {"random_distribution": "zoned:90/10:0/10:5/20:5/60"}),
    ("-r -rdpct100/100 x", "one range", {"random_distribution": "zoned:100/100"}),
    ("-rdpct60/10:40/90 -r x", "in any order", {"random_distribution": "zoned:60/10:40/90"}),
    ("-rdpct90/10 -rs50 -r8k x", "of the random half",
     {"random_distribution": "zoned:90/10:10/90", "percentage_random": "50"}),
    ("-r -rdabs90/1G:0/1G:5/2G -c10G x", "the rest is what -c leaves",
     {"random_distribution": "zoned_abs:90/1g:0/1g:5/2g:5/6g"}),
    ("-r -rdabs90/1G -B1G -f4G x", "or what -f leaves, counted from the base",
     {"random_distribution": "zoned_abs:90/1g:10/2g", "offset": "1g"}),
    ("-r -rdabs60/1G:40/1G x", "nothing is left to place",
     {"random_distribution": "zoned_abs:60/1g:40/1g"}),
    ("-b4K -r -rdabs60/8b:40/8b x", "sizes in blocks",
     {"random_distribution": "zoned_abs:60/32k:40/32k"}),
    # -- rates are for each thread and target, reads and writes together
    ("-g1000 x", "1000 bytes a millisecond", {"rate": "1000000"}),
    ("-g500i x", "500 blocks a second", {"rate_iops": "500", "rate": None}),
    ("-g1000 -w30 x", "for both together", {"rate": "700000,300000"}),
    ("-g500i -w20 x", "for both together", {"rate_iops": "400,100"}),
    ("-g1i -w50 x", "fio's 0 would be no limit", {"rate_iops": "1,1"}),
    ("-g500i -t4 x", "each thread", {"rate_iops": "500", "numjobs": "4"}),
    ("-F4 -g500i x y", "each thread on each target: 1000 a thread", {"rate_iops": "1000"}),
    ("-F4 -g500i x", "one target", {"rate_iops": "500"}),
    ("-i12 -j5 -t4 x", "12 I/Os of all threads, then 5 ms",
     {"thinktime_blocks": "3", "thinktime": "5ms"}),
    ("-i2 -j5 -F4 x", "at least one each", {"thinktime_blocks": "1"}),
    # -- CPUs
    ("-n x", "threads run anywhere", {"cpus_allowed": None}),
    ("x", "threads are bound in turn", {"cpus_allowed": None}),
    ("-a x", "that default, stated", {"cpus_allowed": None}),
    ("-ag x", "the same", {"cpus_allowed": None}),
    ("-t3 -a0,1,2 x", "a thread on each",
     {"cpus_allowed": "0,1,2", "cpus_allowed_policy": "split"}),
    ("-t3 -ag0,0,1,2 x", "the same: group 0", {"cpus_allowed": "0,1,2"}),
    ("-t3 -a0 -a1,2 x", "the same in two", {"cpus_allowed": "0,1,2"}),
    ("-t2 -a3,1,2 x", "the first two of these", {"cpus_allowed": "3,1"}),
    ("-a2,0 x", "the only thread on the first", {"cpus_allowed": "2"}),
    ("-a2,0 x y", "a thread for each target", {"cpus_allowed": "2,0"}),
    ("-F2 -a2,0,1 x y", "two threads in all", {"cpus_allowed": "2,0"}),
    # -- the cache
    ("-S x", "as -Su", {"direct": "1", "sync": None}),
    ("-Sb x", "the default", {"direct": "0"}),
    ("-Sbw -w100 x", "cached, written through", {"direct": "0", "sync": "1"}),
    ("-Swu -w100 x", "in any order", {"direct": "1", "sync": "1"}),
    ("-Su -Sw -w100 x", "in two", {"direct": "1", "sync": "1"}),
    ("-Sh -w100 x", "as -Suw", {"direct": "1", "sync": "1"}),
    ("-h -w100 x", "as -Sh", {"direct": "1", "sync": "1"}),
    ("-Smb x", "mapped and cached", {"ioengine": "mmap", "direct": "0"}),
    ("-Sm -Nn x", "flushed in its way", {"ioengine": "mmap"}),
    # -- switches begin with a slash, too
    ("/b4K x", "as -b4K", {"bs": "4k", "filename": "x"}),
    ("/b4K /Su /o8 /r x", "as -b4K -Su -o8 -r", {"direct": "1", "iodepth": "8"}),
    ("/w30 -rs40 x", "both kinds", {"rwmixwrite": "30", "percentage_random": "40"}),
    ("-b4K /dev/sdx", "here that is a path", {"filename": "/dev/sdx"}),
    ("-b4K /data", "and so is this", {"filename": "/data"}),
    # -- what changes nothing
    ("-:1 x", "experimental flags", {"bs": "64k"}),
    ("-O8 x", "only with -F", {"iodepth": "2"}),
    ("-T1M -t2 x", "threads begin 1 MiB apart", {"offset_increment": "1m"}),
    ("-F2 -o8 x y", "8 for each target and thread", {"iodepth": "16", "filename": "x:y"}),
    ("-F2 -O8 x y", "8 for each thread", {"iodepth": "8"}),
    ("-F2 -t1 x", "-t1 is the default", {"numjobs": "2"}),
    ("-si -t1 x", "a warning: a single thread", {"rw": "read"}),
    ("-Z64K -b64K x", "its own buffer of a block", {"bs": "64k"}),
]  # fmt: skip


@pytest.mark.parametrize(("command", "does", "expected"), DONE, ids=[row[0] for row in DONE])
def test_it_is_the_same_load(command: str, does: str, expected: Given) -> None:
    options = effective_sections(translate(command).text)[0].options
    assert {name: options.get(name) for name in expected} == expected, does


REFUSED = [
    ("-Sbu x", "u conflicts"), ("-Suh x", "h conflicts"), ("-Sbr x", "r conflicts"),
    ("-Smu x", "u conflicts"), ("-Sum x", "m conflicts"), ("-Sww x", "w conflicts"),
    ("-S -S x", "u conflicts"), ("-Sb -Su x", "u conflicts"), ("-Sw -h x", "an earlier -S"),
    ("-h -Sh x", "h conflicts"), ("-Smh x", "h conflicts"),
    ("-B1G -f512M x", "-f must be beyond -B"), ("-B1G -f1G x", "-f must be beyond -B"),
    ("-B1M -B2M x", "can be given only once"), ("-B0:1G -f1G x", "can be given only once"),
    ("-f1G -f2G x", "can be given only once"), ("-B1G: x", "a size such as"),
    ("-B1Gx x", "a size such as"), ("-c1G -B2G x", "beyond the file of -c"),
    ("-r -s x", "cannot be combined"), ("-s -r x", "cannot be combined"),
    ("-s4K -rs40 x", "-r says how"), ("-rs40 -s4K x", "-r says how"), ("-s -s x", "once"),
    ("-r -r4K x", "once"), ("-rs40 -rs50 x", "once"), ("-rs0 x", "from 1 to 100"),
    ("-rs x", "from 1 to 100"), ("-r0 x", "a size such as"),
    ("-rdpct90/10 x", "-rd needs -r"), ("-rdpct90/10 -s x", "-rd needs -r"),
    ("-r -rdnorm1 x", "pct or abs"), ("-r -rdpct10 x", "IO%/part"),
    ("-r -rdpct10/0 x", "from 1 to 100"), ("-r -rdpct101/10 x", "from 0 to 100"),
    ("-r -rdpct60/10:60/10 x", "120 together"), ("-r -rdpct10/50:10/60 x", "110 % of the target"),
    ("-r -rdpct10/50:10/50 x", "but only 20 % of the I/O"),
    ("-r -rdpct100/10 x", "add 0/90"), ("-r -rdpct10/10: x", "IO%/part"),
    ("-r -rdabs10/10 x", "smaller than a block"), ("-r -rdabs10/1G x", "whose size"),
    ("-r -rdabs50/1G:50/1G -f1G x", "beyond the target"),
    ("-F2 -t2 x", "-F and -t"), ("-n -a0 x", "-n and -a"), ("-i5 x", "-i and -j"),
    ("-j5 x", "-i and -j"), ("-x -g5 x", "-g and -x"), ("-F2 -O2 -g5 x", "-g and -O"),
    ("-F2 -O2 -i1 -j1 x", "-j and -O"), ("-F2 -O2 -p x", "-p and -O"), ("-p -r x", "-p and -r"),
    ("-si -t2 -T1M x", "-si and -T"), ("-si -p -t2 x", "-si and -p"), ("-T1M x", "several threads"),
    ("-T1M -t2 -r x", "-T and -r"), ("-Sm -x x", "-Sm and -x"), ("-Nv x", "-N needs -Sm"),
    ("-Sm -Nq x", "v, n or i"), ("-Z4K -b8K x", "smaller than a block"), ("-w x", "from 0 to 100"),
    ("-b4G x", "smaller than 4 GiB"), ("-ag1,0 x", "processor groups"), ("-ag0 x", "no CPUs"),
    ("-a256 x", "from 0 to 255"), ("-a0,,1 x", "from 0 to 255"), ("-Rcsv x", "text or xml"),
    ("-Rp x", "runs nothing"), ("-? x", "runs nothing"), ("-yeX x", "runs nothing"),
    ("-vx x", "-v or -vs"), ("x -d5", "comes after a target"), ("-g5m x", "whole number"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "said"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_diskspd_refuses_is_refused(command: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        translate(command)
    assert said in str(error.value)
