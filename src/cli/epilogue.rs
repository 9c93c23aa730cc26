//! What stands below the options in help and manual: exit statuses and examples.

/// Below the help of the program.
pub(crate) const EXIT_STATUS: &str = "\
Exit status:
  0    everything asked for is complete
  1    an error of persxfer's own
  2    wrong use
  3    a transfer failed for good, or `state check` found damage
  4    stopped with work left; the state is saved, run the same command again
  5    trouble on this machine: disk full, permission, a damaged state, a transfer in use
  130  interrupted; the state is saved
Of several, 5 before 3 before 4.";

/// Below the help of `download`.
pub(crate) const DOWNLOAD_EXAMPLES: &str = "\
The same command again continues the same download. -c, -C - and -L are accepted and change nothing.

Examples:
  persxfer download https://example.org/big.iso
  persxfer download -o big.iso https://a.example.org/big.iso -m https://b.example.org/big.iso
  persxfer download --checksum sha-256=0123...cdef https://example.org/big.iso
  persxfer download --checksums SHA256SUMS -d images -i list.txt
  persxfer download -M images.meta4 -d images
  persxfer download --give-up 2d --retry-policy ranged https://example.org/big.iso";

/// Below the help of `upload`.
pub(crate) const UPLOAD_EXAMPLES: &str = "\
The file is done once one server has taken it whole; more URLs are servers that are as good.
Without --protocol and without a prefix, a URL with file_upload_handler in it is BOINC's, and any
other takes one PUT. With put, put-range and s3, a URL that ends in / gets the file's name
appended. With s3, keys come from $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY or from a profile,
and a URL that is signed is used as it is. An option that no server given here has a use for is
wrong use. The same command again continues the same upload, from what the server says it has.
-c, -C - and -L are accepted and change nothing.

Examples:
  persxfer upload results.zip https://example.org/incoming/
  persxfer upload results.zip tus+https://a.example.org/files/ tus+https://b.example.org/files/
  persxfer upload --verify always big.iso put-range+https://example.org/dav/
  persxfer upload big.iso s3://bucket/images/
  persxfer upload --endpoint-url https://store.example.org --profile lab big.iso s3://bucket/big.iso
  persxfer upload --s3-manifest urls.json big.iso
  persxfer upload --name run_1_0 --boinc-signature run.sig out.dat boinc+https://example.org/upload
  persxfer add upload results.zip https://example.org/incoming/ && persxfer run";

/// Below the help of `add`.
pub(crate) const ADD_EXAMPLES: &str = "\
Examples:
  persxfer add download -i list.txt -d images
  persxfer add upload results.zip tus+https://example.org/files/
  persxfer run";

/// Below the help of `run`.
pub(crate) const RUN_EXAMPLES: &str = "\
It leaves alone what another living process runs, and takes over what a killed one left. Which proxies to use,
how patient to be and the like was said when a transfer was added; how much at once is said here.

Examples:
  persxfer add download -i list.txt && persxfer run -j 4
  persxfer run --forever --gui-rpc --metrics 9416";

/// Below the help of `worker`.
pub(crate) const WORKER_EXAMPLES: &str = "\
Each record that is due is fetched from its mirrors in one round, and verified where its digest is known; what fails waits
in the ledger, as long as its class says (docs/ledger.md). Several workers may share a ledger, and a folder. Told to stop, it
keeps what it holds of files and gives its claims back.

Examples:
  persxfer ledger add http://example.org/data/f.tar && persxfer worker -d files
  persxfer worker -d files --until-idle -j 16";

/// Below the help of `sync`.
pub(crate) const SYNC_EXAMPLES: &str = "\
CONFIG says which modules there are, where each has its sources, and what is kept (docs/sync.md).
Each source is asked for its index, what is new or changed is fetched from all that have it, looked at,
and merged into our own trees. In one run each mirror of a file is asked once; what could not be had
is tried by a later run, not before its time.

Examples:
  persxfer sync collector.properties
  persxfer sync collector.properties --module exitlists --dry-run
  persxfer sync trees.toml --every 1h -j 16 --max-transfers-per-host 8

A configuration:
  SyncFolder = /var/cache/sync
  RecentPath = /srv/collector/recent
  SyncExitLists = SyncOnly
  SyncSourcesExitLists = main https://a.example/, https://b.example/index/index.json.xz
  ExitListsOutDirectory = /srv/collector/out/exit-lists

Exit status 4: a source could not be read, or files are left; 5: another process is at it, or
trouble on this machine.";

/// Below the help of `ledger`.
pub(crate) const LEDGER_EXAMPLES: &str = "\
Examples:
  Remember a file, and what is to be tried now:
    persxfer ledger add http://example.org/data/f.tar
    persxfer ledger list --state due
  A crawler claims, works, and tells what came of it:
    persxfer ledger claim -n 20 --as crawler-1 > claims.jsonl
    persxfer ledger complete --lines < done.jsonl
    persxfer ledger fail KEY TOKEN --class missing

A record is never given up and never taken out but by `forget`.
Exit status 4: a lease was lost, or what was named cannot be claimed.";

/// Below the help of `ledger add`.
pub(crate) const LEDGER_ADD_EXAMPLES: &str = "\
Examples:
  persxfer ledger add http://example.org/f --key f --checksum sha-256=HEX
  persxfer ledger add - < files.jsonl

A line: {\"key\": \"f\", \"urls\": [\"http://example.org/f\"], \"size\": 12, \"checksum\": \"sha-256=HEX\"}";

/// Below the help of `ledger claim`.
pub(crate) const LEDGER_CLAIM_EXAMPLES: &str = "\
Examples:
  persxfer ledger claim -n 100 --as crawler-1 --lease 5m --per-host 4
  persxfer ledger claim http://example.org/f

After a crash `persxfer ledger release --of crawler-1` gives back what it held, at no cost to any file.";
