# Runs in the guest as its only program; see __main__.py. /out is the host's directory of results.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t tmpfs run /run
mkdir -p /out /run/mnt
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none out /out
mount -t configfs configfs /sys/kernel/config
. /out/settings
exec >>/out/log 2>&1
cd "$repository"

delays=/sys/bus/pseudo/drivers/scsi_debug/ndelay

# log TEXT: the virtual time is no measure of anything, only of progress
log() { echo "[virtual $(cut -d. -f1 /proc/uptime) s] $*"; }
iopstui() { "$python" -m iopstui "$@"; }
node() { [ -b "/dev/$1" ] || mknod "/dev/$1" b $(tr : ' ' < "/sys/block/$1/dev"); }
# a start at another phase of the second
settle() { sleep "2.$((RANDOM % 10))$((RANDOM % 10))"; }
end() { echo "$2" > "/out/$1.rc"; log "$1: exit code $2"; }

# sync_disk: every request takes 0 to $delay ns by chance, one at a time, and there is no cache
sync_disk() {
  until [ -n "$disk" ]; do sleep 1; disk=$(cd /sys/block; echo sd*); disk=${disk#sd\*}; done
  node "$disk"
  echo 'write through' > "/sys/block/$disk/queue/write_cache"
  mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "/dev/$disk"
  mount "/dev/$disk" /run/mnt
}
delay() { until echo "$1" > $delays; do sleep 0.01; done 2>/dev/null; settle; }

# queue NS: a disk with one request at a time, each of which takes NS
queue() {
  local dir=/sys/kernel/config/nullb/n0
  if [ -d $dir ]; then echo 0 > $dir/power; rmdir $dir; rm -f /dev/n0; fi
  mkdir $dir
  echo "$1" > $dir/completion_nsec
  echo 2 > $dir/irqmode; echo 1 > $dir/hw_queue_depth; echo 1 > $dir/submit_queues
  echo 256 > $dir/size; echo 1 > $dir/power
  node n0
  echo mq-deadline > /sys/block/n0/queue/scheduler
  echo 2048 > /sys/block/n0/queue/nr_requests
  settle
}

# fio alone: the truth
sync_truth() { # NAME DELAY
  delay "$2"
  fallocate -l 170m /run/mnt/truth
  fio --name=w --filename=/run/mnt/truth --rw=write --bs=2300 --fdatasync=1 --size=170m \
    --fallocate=none --ioengine=sync --time_based --ramp_time=2 --runtime=60 \
    --output-format=json > "/out/$1.json"
  end "$1" $?
  rm -f /run/mnt/truth
}
rate_truth() { # NAME NS RATE SECONDS
  queue "$2"
  fio --name=r --filename=/dev/n0 --readonly --rw=randread --bs=4k --direct=1 --ioengine=libaio \
    --iodepth=4000 --rate_iops="$3" --rate_process=poisson --randrepeat=0 --randseed=$RANDOM \
    --time_based --ramp_time=2 --runtime="$4" --output-format=json+ > "/out/$1.json"
  end "$1" $?
}

fit() { # NAME DELAY [OPTIONS OF A NEIGHBOUR]
  local name=$1 pid=
  delay "$2"
  shift 2
  if [ $# -gt 0 ]; then
    fio --name=neighbour --size=32m --time_based --runtime=600 "$@" > /dev/null 2>&1 & pid=$!
    sleep 1
  fi
  iopstui fit /run/mnt etcd --json > "/out/$name.json" 2> "/out/$name.err"
  end "$name" $?
  if [ -n "$pid" ]; then kill $pid; wait $pid; rm -f /run/mnt/neighbour*; fi
}
limit() { # NAME NS BOUND SECONDS
  queue "$2"
  iopstui limit /dev/n0 --job randread-4k --keep "read.clat.p99<=$3" --time "$4" --json \
    > "/out/$1.json" 2> "/out/$1.err"
  end "$1" $?
}

log "up"
RANDOM=$seed
if grep -qE '^(fit|sync_truth) ' /out/plan; then
  sync_disk
  iopstui fit /run/mnt etcd --measure 5 > /dev/null 2>&1
fi
if grep -q '^limit ' /out/plan; then
  # all files of the program are in memory afterwards
  queue 100000
  iopstui limit /dev/n0 --job randread-4k --keep 'read.clat.p99<=20ms' --time 30 > /dev/null 2>&1
fi
log "warm"
. /out/plan
log "end"
busybox poweroff -f
