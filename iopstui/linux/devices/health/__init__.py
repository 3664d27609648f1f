"""Health of a disk: smartctl, temperature, PCIe link, and reports of SCSI, md and multipath."""
